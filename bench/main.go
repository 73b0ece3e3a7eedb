// Program bench measures lock clients. See docs/performance.md for the results.
//
//	bench run     all clients, all cases: tables and plots
//	bench quick   the working tree against another build
//	bench loss    when holders notice a lost lock
//	bench worker  the process that locks, started by run and quick
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/redlatch/redlatch/bench/internal/work"
)

var errUsage = errors.New("usage: bench run|quick|loss|worker [flags]")

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	switch args[0] {
	case "run":
		return runAll(args[1:])
	case "quick":
		return runQuick(args[1:])
	case "loss":
		return runLoss(args[1:])
	case "worker":
		return work.Serve(context.Background(), os.Stdin, os.Stdout)
	default:
		return errUsage
	}
}
