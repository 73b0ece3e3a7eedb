package redistest

import (
	"fmt"
	"os"
	"testing"
)

// orphanEnv turns the test binary into one that starts a server and is killed
// before it can end it.
const orphanEnv = "REDISTEST_ORPHAN"

func TestMain(m *testing.M) {
	if os.Getenv(orphanEnv) != "" {
		orphan()
	}
	Main(m)
}

func orphan() {
	cfg := newConfig(nil)
	if err := cfg.findBinary(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	s, err := start(cfg)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("addr", s.Addr())
	select {}
}
