// Command redlatch takes Redisson-compatible locks from the shell: it runs a command under
// a lock, shows the holder of a lock, evicts dead waiters from its queue, starts a server
// for development, and demonstrates what the lock does when a holder dies.
package main

import (
	"context"
	"os"

	"github.com/redlatch/redlatch/cmd/redlatch/demo"
	"github.com/redlatch/redlatch/cmd/redlatch/doctor"
	"github.com/redlatch/redlatch/cmd/redlatch/evict"
	"github.com/redlatch/redlatch/cmd/redlatch/exporter"
	"github.com/redlatch/redlatch/cmd/redlatch/hold"
	"github.com/redlatch/redlatch/cmd/redlatch/list"
	"github.com/redlatch/redlatch/cmd/redlatch/manual"
	"github.com/redlatch/redlatch/cmd/redlatch/release"
	"github.com/redlatch/redlatch/cmd/redlatch/run"
	"github.com/redlatch/redlatch/cmd/redlatch/serve"
	"github.com/redlatch/redlatch/cmd/redlatch/status"
	"github.com/redlatch/redlatch/cmd/redlatch/ui"
	"github.com/redlatch/redlatch/cmd/redlatch/unlock"
	"github.com/redlatch/redlatch/cmd/redlatch/watch"
	"github.com/redlatch/redlatch/internal/tool/cli"
)

// constructors make the commands, the hidden ones among them.
var constructors = []cli.Constructor{
	demo.New, demo.NewWorker,
	doctor.New,
	evict.New,
	exporter.New,
	hold.New, hold.NewDetached,
	list.New,
	manual.New,
	release.New,
	run.New, run.NewGuard,
	serve.New,
	status.New,
	ui.New,
	unlock.New,
	watch.New,
}

func main() { os.Exit(cli.Execute(context.Background(), os.Args[1:], constructors...)) }
