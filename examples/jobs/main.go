// Command jobs runs the jobs in a Redis list one at a time and in order. There can be any number of
// workers, which take turns through a fair lock. If a worker crashes, its job stays at the front of
// the list for the next worker. Copy it into your program.
//
//	redis-cli RPUSH jobs-example one two three
//	go run ./examples/jobs redis://localhost:6379
//
// On SIGTERM, it finishes the current job or stops waiting for the lock.
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

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rfairlock"
)

const (
	todo = "jobs-example"      // jobs to do; the first one is next
	done = "jobs-example:done" // finished jobs, in order

	// patience is how long the current job may take after SIGTERM. It must be shorter than the time
	// that your platform allows until SIGKILL.
	patience = 20 * time.Second
	idle     = 500 * time.Millisecond // pause while the list is empty
)

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
	jobs, err := redis.DialURL(url)
	if err != nil {
		return err
	}
	client, err := redlatch.Open(context.Background(), url)
	if err != nil {
		return errors.Join(err, jobs.Close())
	}
	term, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()

	ended := make(chan error, 1)
	go func() { ended <- work(term, client, jobs) }()

	select {
	case err := <-ended:
		return errors.Join(err, client.Close(), jobs.Close())
	case <-term.Done():
	}
	log.Print("stopping: finishing the current job")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return errors.Join(client.Shutdown(ctx), <-ended, jobs.Close())
}

// work runs until the client is shut down, or until term ends and no job is left.
func work(term context.Context, client *redlatch.Client, jobs redis.Conn) error {
	lock := rfairlock.New(client, "jobs-example:lock")
	for {
		err := lock.Do(context.Background(), func(ctx context.Context) error { return next(ctx, jobs) })
		switch {
		case errors.Is(err, redlatch.ErrClosed):
			return nil
		case errors.Is(err, redlatch.ErrLost):
			log.Print(err) // the job is still on the list, so another worker will run it
		case errors.Is(err, redis.ErrNil): // the list is empty
			select {
			case <-time.After(idle):
			case <-term.Done():
				return nil
			}
		case err != nil:
			return err
		}
	}
}

// next runs the first job and then removes it from the list. If the worker dies in between, the next worker
// runs the job again.
func next(ctx context.Context, jobs redis.Conn) error {
	job, err := redis.String(jobs.Do("LINDEX", todo, 0))
	if err != nil {
		return err
	}
	fmt.Println("working on", job)
	select {
	case <-time.After(200 * time.Millisecond): // the work, which must respect ctx
	case <-ctx.Done():
		return context.Cause(ctx) // the lock was lost: stop immediately
	}
	_ = jobs.Send("MULTI") // if Send fails, EXEC also returns an error
	// Remove the job by name. If the lease has expired, another worker may have run it, and the
	// list may start with another job.
	_ = jobs.Send("LREM", todo, 1, job)
	_ = jobs.Send("RPUSH", done, job)
	_, err = jobs.Do("EXEC")
	return err
}
