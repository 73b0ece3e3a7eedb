// Command cron runs a job at most once per hour, on any number of machines. The first machine
// acquires the lock for the hour and lets it expire; the others exit. If the job fails, it releases
// the lock, so that another machine may try. If the machine crashes, the job is not repeated in
// that hour. Copy it into your program.
//
//	0 * * * *  cron redis://localhost:6379
//
// The command redlatch run --at-least is similar, but keeps the lock even if the job fails, and
// renews the lock while the job runs. If its machine crashes, the lock expires after one watchdog
// lease. Here, a job that takes longer than the lease ends with ErrLost.
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

const (
	period = time.Hour
	// slack is the time between the end of the lease and the next period. It must be longer than
	// the difference between the machines' clocks and start delays, or the next run may be skipped.
	slack = time.Minute
)

func main() {
	url := "redis://localhost:6379"
	if len(os.Args) > 1 {
		url = os.Args[1]
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, url); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url string) error {
	client, err := redlatch.Open(ctx, url)
	if err != nil {
		return err
	}
	_, err = once(ctx, rlock.New(client, "cron-example"), report)
	return errors.Join(err, client.Close())
}

// once runs the job unless it ran in this period, and reports whether it did.
func once(ctx context.Context, lock *rlock.Lock, job func(context.Context) error) (bool, error) {
	hold, err := lock.TryLock(ctx, rlock.WithLease(period-slack))
	switch {
	case errors.Is(err, redlatch.ErrNotAcquired):
		fmt.Println("not running the job:", err) // the error contains the remaining lease, if known
		return false, nil
	case err != nil:
		return false, err
	}
	if err := job(hold.Context(ctx)); err != nil {
		return true, errors.Join(err, hold.Unlock()) // let another machine try
	}
	return true, hold.LetExpire() // no other machine runs it in this period
}

// report is a placeholder for the job.
func report(ctx context.Context) error {
	fmt.Println("reporting")
	return ctx.Err()
}
