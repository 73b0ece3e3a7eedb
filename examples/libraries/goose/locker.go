// Package goose lets a single process migrate a database while the others wait. Use it for
// databases without session locks, such as SQLite on a shared disk or ClickHouse. For PostgreSQL
// and MySQL, prefer goose's own database locks. Copy it into your program.
//
//	provider, err := goose.NewProvider(dialect, db, migrations, goose.WithLocker(locker.New(client, "migrations:orders")))
package goose

import (
	"context"
	"database/sql"
	"fmt"
	"sync"

	"github.com/pressly/goose/v3/lock"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

// Locker is goose's lock.Locker for one Provider. Its lock is renewed until Unlock. goose does not
// notice when the lock is lost, so use transactions, with which the database rejects a second
// migration.
type Locker struct {
	lock *rlock.Lock

	mu   sync.Mutex
	hold *rlock.Hold
}

var _ lock.Locker = (*Locker)(nil)

// New returns a Locker. All processes that migrate the database must use the same name.
func New(client *redlatch.Client, name string) *Locker { return &Locker{lock: rlock.New(client, name)} }

// Lock waits for the lock until ctx ends.
func (l *Locker) Lock(ctx context.Context, _ *sql.DB) error {
	hold, err := l.lock.Lock(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hold = hold
	return nil
}

// Unlock releases the lock.
func (l *Locker) Unlock(context.Context, *sql.DB) error {
	l.mu.Lock()
	hold := l.hold
	l.hold = nil
	l.mu.Unlock()
	if hold == nil {
		return fmt.Errorf("%w: %q", redlatch.ErrNotHeld, l.lock.Name())
	}
	return hold.Unlock()
}
