package status

import (
	"testing"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/cmd/redlatch/list"
	"github.com/redlatch/redlatch/cmd/redlatch/unlock"
	"github.com/redlatch/redlatch/cmd/redlatch/watch"
	"github.com/redlatch/redlatch/internal/test/program"
)

func TestMain(m *testing.M) { program.Main(m, cli.Execute, New, list.New, unlock.New, watch.New) }
