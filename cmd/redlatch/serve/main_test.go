package serve_test

import (
	"testing"

	"github.com/redlatch/redlatch/cmd/redlatch/serve"
	"github.com/redlatch/redlatch/internal/test/program"
)

func TestMain(m *testing.M) { program.Main(m, serve.New) }
