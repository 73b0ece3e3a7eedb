// Command testing uses a lock. Its main_test.go shows how to test it without a server when the lock
// is free, held by another process or lost, and when Redis is down. See docs/testing-your-code.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url string) error {
	client, err := redlatch.Open(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // the program is about to exit
	report := &Report{Lock: rlock.New(client, "report")}
	err = report.Write(ctx)
	fmt.Println("pages written:", report.Pages)
	return err
}

// Report is a report that only one process writes at a time.
type Report struct {
	// Lock is held while writing.
	Lock *rlock.Lock
	// Pages is the number of pages written.
	Pages int
}

// ErrBusy means that another process is writing the report.
var ErrBusy = errors.New("another process writes the report")

// Write writes ten pages, one per second, and stops when the lock is lost.
func (r *Report) Write(ctx context.Context) error {
	err := r.Lock.Do(ctx, r.pages, rlock.WithWait(5*time.Second))
	if errors.Is(err, redlatch.ErrNotAcquired) {
		return ErrBusy
	}
	return err
}

func (r *Report) pages(ctx context.Context) error {
	for r.Pages < 10 {
		select {
		case <-time.After(time.Second):
			r.Pages++
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Locker is the part of *rlock.Lock that is needed by a program that uses only Do.
type Locker interface {
	// Do runs fn under the lock, like [rlock.Lock.Do].
	Do(ctx context.Context, fn func(ctx context.Context) error, opts ...rlock.Option) error
}

var _ Locker = (*rlock.Lock)(nil)

// Nightly runs a job under a lock.
func Nightly(ctx context.Context, lock Locker, job func(ctx context.Context) error) error {
	return lock.Do(ctx, job)
}
