package observability

import (
	"testing"

	"github.com/redlatch/redlatch/cmd/redlatch/exporter"
	"github.com/redlatch/redlatch/internal/test/program"
)

func TestMain(m *testing.M) { program.Main(m, exporter.New) }
