package rfairlock_test

import (
	"os"
	"testing"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

// roles are what the binary can be instead of a test: other processes. Each is
// chosen by a variable of the environment, which says where the server is.
var roles = map[string]func(url string){}

func TestMain(m *testing.M) {
	for variable, play := range roles {
		if url := os.Getenv(variable); url != "" {
			play(url)
		}
	}
	redistest.Main(m)
}
