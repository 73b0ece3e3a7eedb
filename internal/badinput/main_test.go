package badinput_test

import (
	"testing"

	"github.com/redlatch/redlatch/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }
