package stress

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/test/stress/internal/worker"
)

// workerEnv has the configuration of a test binary that is to be a client process.
const workerEnv = "REDLATCH_STRESS_WORKER"

func TestMain(m *testing.M) {
	if text := os.Getenv(workerEnv); text != "" {
		if err := serve(text); err != nil {
			fmt.Fprintln(os.Stderr, "stress worker:", err)
			os.Exit(1)
		}
		return
	}
	if text := os.Getenv(holderEnv); text != "" {
		if err := holdPermits(text); err != nil {
			fmt.Fprintln(os.Stderr, "holder of permits:", err)
			os.Exit(1)
		}
		return
	}
	redistest.Main(m)
}

func serve(text string) error {
	var cfg worker.Config
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		return err
	}
	return worker.Serve(cfg, os.Stdin, os.Stdout)
}
