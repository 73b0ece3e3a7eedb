package redlatch_test

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(memberURL); url != "" {
		loop := memberLoop
		if os.Getenv(memberTurns) != "" {
			loop = turnsLoop
		}
		if err := loop(url); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// Most of what the comparison with Redisson does is to wait for leases to end.
	parallel := flag.Lookup("test.parallel").Value // not what the command line says, yet
	if n, err := strconv.Atoi(parallel.String()); err == nil && n < 6 {
		_ = parallel.Set("6") // it takes any number
	}
	redistest.Main(m)
}
