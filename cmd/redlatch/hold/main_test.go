package hold_test

import (
	"testing"

	"github.com/redlatch/redlatch/cmd/redlatch/hold"
	"github.com/redlatch/redlatch/cmd/redlatch/release"
	"github.com/redlatch/redlatch/cmd/redlatch/run"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/tool/cli"
)

func TestMain(m *testing.M) {
	program.Main(m, cli.Execute, hold.New, hold.NewDetached, release.New, run.New, run.NewGuard)
}
