package demo

import (
	"testing"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/tool/cli"
)

func TestMain(m *testing.M) { program.Main(m, cli.Execute, New, NewWorker) }
