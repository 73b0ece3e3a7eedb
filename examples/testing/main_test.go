package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/rlock"
)

// newLock returns the lock on a new client, as in another process.
func newLock(t *testing.T, srv *embedded.Server) *rlock.Lock {
	t.Helper()
	client, err := redlatch.New(srv.Dial)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return rlock.New(client, "report")
}

// newServer returns an in-process server without a port.
func newServer(t *testing.T) *embedded.Server {
	t.Helper()
	srv, err := embedded.Start(embedded.WithInProcess())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	return srv
}

// The report's ten seconds pass immediately, since time in a bubble is fake, also on the server.
func TestReportWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report := &Report{Lock: newLock(t, newServer(t))}
		if err := report.Write(t.Context()); err != nil || report.Pages != 10 {
			t.Fatal(report.Pages, err)
		}
	})
}

func TestReportSkippedWhileAnotherProcessWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t)
		if _, err := newLock(t, srv).Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		report := &Report{Lock: newLock(t, srv)}
		if err := report.Write(t.Context()); !errors.Is(err, ErrBusy) || report.Pages > 0 {
			t.Fatal(report.Pages, err)
		}
	})
}

// The lock is taken by force. The holder learns of it with its next renewal, after a third
// of the lease of 30 seconds.
func TestReportStopsWhenLockIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t)
		operator := newLock(t, srv)
		time.AfterFunc(3*time.Second, func() { _, _ = operator.ForceUnlock(context.Background()) })
		report := &Report{Lock: newLock(t, srv), Pages: -90} // a long one
		began := time.Now()
		err := report.Write(t.Context())
		if !errors.Is(err, redlatch.ErrLost) || time.Since(began) > 11*time.Second {
			t.Fatal(time.Since(began), err)
		}
	})
}

// Redis goes away. The lock counts as lost a margin of a second before its lease ends.
func TestReportStopsWhenOutageOutlastsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t)
		time.AfterFunc(3*time.Second, func() { srv.FailWith("LOADING Redis is loading the dataset in memory") })
		report := &Report{Lock: newLock(t, srv), Pages: -90}
		began := time.Now()
		err := report.Write(t.Context())
		if !errors.Is(err, redlatch.ErrLost) || time.Since(began) > 29*time.Second {
			t.Fatal(time.Since(began), err)
		}
	})
}

func TestReportNotWrittenWhileRedisIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t)
		srv.Close()
		report := &Report{Lock: newLock(t, srv)}
		if err := report.Write(t.Context()); !errors.Is(err, redlatch.ErrNotSent) {
			t.Fatal(err)
		}
	})
}

// free is a lock that is always free, and lost is a lock that is lost immediately.
type free struct{}

func (free) Do(ctx context.Context, fn func(context.Context) error, _ ...rlock.Option) error {
	return fn(ctx)
}

type lost struct{}

func (lost) Do(ctx context.Context, fn func(context.Context) error, _ ...rlock.Option) error {
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(redlatch.ErrLost)
	return errors.Join(fn(ctx), redlatch.ErrLost)
}

func TestNightlyStopsWhenLockIsLost(t *testing.T) {
	job := func(ctx context.Context) error { return context.Cause(ctx) }
	if err := Nightly(t.Context(), free{}, job); err != nil {
		t.Fatal(err)
	}
	if err := Nightly(t.Context(), lost{}, job); !errors.Is(err, redlatch.ErrLost) {
		t.Fatal(err)
	}
}
