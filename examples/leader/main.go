// Command leader leads while it holds a lock, and otherwise waits to become the leader. If its work
// respects its context, a leader that loses the lock steps down before the next one starts. On
// SIGTERM, it releases the lock immediately. After a crash, another process leads when the lease
// has expired, which takes up to six seconds here. Copy it into your program.
//
//	go run ./examples/leader redis://localhost:6379
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/leader"
)

// lease is the longest time without a leader after a crash. A Redis outage that lasts about as long
// also ends the leadership.
const lease = 6 * time.Second

func main() {
	url := "redis://localhost:6379"
	if len(os.Args) > 1 {
		url = os.Args[1]
	}
	if err := run(url); err != nil {
		log.Fatal(err)
	}
}

func run(url string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	client, err := redlatch.Open(ctx, url, redlatch.WithWatchdogTimeout(lease))
	if err != nil {
		return err
	}
	return errors.Join(stand(ctx, client, os.Stdout), client.Close())
}

// stand runs a candidate until ctx ends.
func stand(ctx context.Context, client *redlatch.Client, out io.Writer) error {
	return leader.Run(ctx, client, "leader-example", leader.Config{
		Lead:    func(ctx context.Context) error { return lead(ctx, out) },
		OnError: func(err error) { _, _ = fmt.Fprintln(out, "stepped down:", err) },
	})
}

// lead is a placeholder for the leader's work. It must return soon after ctx ends, because another process may
// lead by then.
func lead(ctx context.Context, out io.Writer) error {
	_, _ = fmt.Fprintln(out, "leading")
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C: // a piece of work
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
