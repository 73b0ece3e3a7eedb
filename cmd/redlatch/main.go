// Command redlatch acquires Redisson-compatible locks from the shell. It runs a command under a
// lock, shows holders and queues, evicts dead waiters, starts a development server, and
// demonstrates how a lock is recovered when its holder dies.
package main

import (
	"context"
	"os"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/demo"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/exporter"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/force"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/hold"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/show"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/ui"
)

var constructors = []cli.Constructor{
	demo.New, demo.NewWorker,
	show.NewDoctor, show.NewList, show.NewStatus, show.NewWatch,
	force.NewEvict, force.NewUnlock,
	exporter.New,
	hold.New, hold.NewDetached, hold.NewRelease, hold.NewRun, hold.NewGuard,
	newManual,
	newServe,
	ui.New,
}

func main() { os.Exit(cli.Execute(context.Background(), os.Args[1:], constructors...)) }
