package run_test

import (
	"testing"

	"github.com/redlatch/redlatch/cmd/redlatch/run"
	"github.com/redlatch/redlatch/internal/test/program"
)

func TestMain(m *testing.M) { program.Main(m, run.New, run.NewGuard) }
