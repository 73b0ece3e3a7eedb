package show

import (
	"testing"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/force"
	"github.com/redlatch/redlatch/internal/test/program"
)

func TestMain(m *testing.M) {
	program.Main(m, cli.Execute, NewDoctor, NewList, NewStatus, NewWatch, force.NewUnlock)
}
