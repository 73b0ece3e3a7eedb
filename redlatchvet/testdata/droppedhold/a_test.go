package droppedhold

import (
	"testing"

	"github.com/redlatch/redlatch/rlock"
)

func TestBusy(t *testing.T) {
	_, _ = rlock.New(nil, "a test may make a lock busy").Lock(t.Context())
}
