package force

import (
	"testing"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/test/program"
)

func TestMain(m *testing.M) {
	program.Main(m, cli.Execute, NewEvict, NewUnlock, hold.NewRun, hold.NewGuard)
}
