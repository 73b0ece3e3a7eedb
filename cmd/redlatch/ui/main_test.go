package ui_test

import (
	"testing"

	"github.com/redlatch/redlatch/cmd/redlatch/ui"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/tool/cli"
)

func TestMain(m *testing.M) { program.Main(m, cli.Execute, ui.New) }
