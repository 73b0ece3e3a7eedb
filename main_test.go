package redlatch_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/redlatch/redlatch/internal/redistest"
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
	redistest.Main(m)
}
