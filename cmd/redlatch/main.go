// Command redlatch takes Redisson-compatible locks from the shell: it runs a command under
// a lock, shows the holder of a lock, evicts dead waiters from its queue, starts a server
// for development, and demonstrates what the lock does when a holder dies.
package main

import (
	"context"
	"os"

	"github.com/redlatch/redlatch/cmd/redlatch/doctor"
	"github.com/redlatch/redlatch/cmd/redlatch/evict"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/demo"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/exporter"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/hold"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/ui"
	"github.com/redlatch/redlatch/cmd/redlatch/list"
	"github.com/redlatch/redlatch/cmd/redlatch/status"
	"github.com/redlatch/redlatch/cmd/redlatch/unlock"
	"github.com/redlatch/redlatch/cmd/redlatch/watch"
)

// constructors make the commands, the hidden ones among them.
var constructors = []cli.Constructor{
	demo.New, demo.NewWorker,
	doctor.New,
	evict.New,
	exporter.New,
	hold.New, hold.NewDetached, hold.NewRelease, hold.NewRun, hold.NewGuard,
	list.New,
	newManual,
	newServe,
	status.New,
	ui.New,
	unlock.New,
	watch.New,
}

func main() { os.Exit(cli.Execute(context.Background(), os.Args[1:], constructors...)) }
