// Program onelock takes one free lock on a server inside the process and writes, into the
// folder it is given, the coverage counters of that alone. Package seam builds it with
// coverage and runs it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/coverage"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/rlock"
)

const (
	// watchdog is long: no renewal may run while the lock is taken.
	watchdog = time.Hour
	// quiet is how long goroutines in the background have to come to rest.
	quiet = 300 * time.Millisecond
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: onelock folder")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "onelock:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string) (err error) {
	server, err := embedded.Start()
	if err != nil {
		return err
	}
	defer server.Close()
	client, err := redlatch.New(server.Dial, redlatch.WithWatchdogTimeout(watchdog))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	warm, err := rlock.New(client, "warm").Lock(ctx)
	if err != nil {
		return err
	}
	if err := warm.Unlock(); err != nil {
		return err
	}
	lock := rlock.New(client, "measured")
	time.Sleep(quiet)
	return measured(ctx, lock, dir)
}

// measured takes the lock with all counters at zero, and writes them when everything that the
// lock has set off in the background has run.
func measured(ctx context.Context, lock *rlock.Lock, dir string) error {
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	hold, err := lock.Lock(ctx)
	time.Sleep(quiet)
	err = errors.Join(err, coverage.WriteMetaDir(dir), coverage.WriteCountersDir(dir))
	if hold != nil {
		err = errors.Join(err, hold.Unlock())
	}
	return err
}
