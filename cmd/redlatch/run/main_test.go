package run_test

import (
	"testing"

	"github.com/redlatch/redlatch/cmd/redlatch/run"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/tool/cli"
)

func TestMain(m *testing.M) { program.Main(m, cli.Execute, run.New, run.NewGuard) }
