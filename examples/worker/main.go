// Command worker takes a lock again and again, works under it, and ends cleanly on
// SIGTERM: it takes no new lock, finishes the work at hand, frees its lock, and
// leaves nothing to run out. Copy it.
//
//	go run ./examples/worker redis://localhost:6379
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

// patience is how long work at hand may take after SIGTERM. Keep it below what
// your platform waits before it sends SIGKILL.
const patience = 20 * time.Second

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
	client, err := redlatch.Open(context.Background(), url)
	if err != nil {
		return err
	}
	term, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()

	done := make(chan error, 1)
	go func() { done <- work(rlock.New(client, "worker-example")) }()

	select {
	case err := <-done:
		return errors.Join(err, client.Close())
	case <-term.Done():
	}
	log.Print("asked to stop: finishing the work at hand")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return errors.Join(client.Shutdown(ctx), <-done)
}

// work goes on until the client takes no more locks.
func work(lock *rlock.Lock) error {
	for n := 1; ; n++ {
		err := lock.Do(context.Background(), func(ctx context.Context) error {
			fmt.Println("working on", n)
			select {
			case <-time.After(time.Second): // the work; it heeds ctx, too
				return nil
			case <-ctx.Done():
				return context.Cause(ctx) // the lock was lost: stop at once
			}
		})
		switch {
		case errors.Is(err, redlatch.ErrClosed):
			return nil
		case errors.Is(err, redlatch.ErrLost):
			log.Print(err) // another worker may have the lock by now
		case err != nil:
			return err
		}
	}
}
