// Command redlatch acquires Redisson-compatible locks from the shell. It runs a command under a
// lock, shows holders and queues, evicts dead waiters, starts a development server, and
// demonstrates how a lock is recovered when its holder dies.
//
// Releases contain cmd/redlatch/full instead, which adds the terminal view of redlatch top.
package main

import (
	"context"
	"os"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/all"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
)

func main() { os.Exit(cli.Execute(context.Background(), os.Args[1:], all.Commands(nil)...)) }
