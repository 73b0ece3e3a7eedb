package compat

import (
	"testing"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestMain(m *testing.M) {
	Member()
	redistest.Main(m)
}
