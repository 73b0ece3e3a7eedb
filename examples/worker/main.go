// Command worker repeatedly works under a lock. On SIGTERM, it finishes the current work, releases
// the lock and exits, so that no lease is left to expire. Copy it into your program.
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

// patience is how long the current work may take after SIGTERM. It must be shorter than the time
// that your platform allows until SIGKILL.
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
	log.Print("stopping: finishing the current work")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return errors.Join(client.Shutdown(ctx), <-done)
}

// work runs until the client is shut down.
func work(lock *rlock.Lock) error {
	for n := 1; ; n++ {
		err := lock.Do(context.Background(), func(ctx context.Context) error {
			fmt.Println("working on", n)
			select {
			case <-time.After(time.Second): // the work, which must respect ctx
				return nil
			case <-ctx.Done():
				return context.Cause(ctx) // the lock was lost: stop immediately
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
