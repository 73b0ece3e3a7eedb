package unlock

import (
	"testing"

	"github.com/redlatch/redlatch/cmd/redlatch/evict"
	"github.com/redlatch/redlatch/cmd/redlatch/run"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/tool/cli"
)

func TestMain(m *testing.M) { program.Main(m, cli.Execute, New, evict.New, run.New, run.NewGuard) }
