package ui_test

import (
	"testing"

	"github.com/redlatch/redlatch/cmd/redlatch/ui"
	"github.com/redlatch/redlatch/internal/test/program"
)

func TestMain(m *testing.M) { program.Main(m, ui.New) }
