package goose_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the database

	"github.com/redlatch/redlatch"
	latchgoose "github.com/redlatch/redlatch/examples/libraries/goose"
	"github.com/redlatch/redlatch/examples/libraries/internal/candidates"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestOneProcessMigratesWhileOthersWait(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	name, file := redistest.Key(t), filepath.Join(t.TempDir(), "orders.db")
	var busy, migrated atomic.Int32
	slow := goose.NewGoMigration(1, &goose.GoFunc{RunDB: func(context.Context, *sql.DB) error {
		assert.EqualValues(t, 1, busy.Add(1), "two processes migrate")
		defer busy.Add(-1)
		<-time.After(200 * time.Millisecond)
		migrated.Add(1)
		return nil
	}}, nil)
	var processes sync.WaitGroup
	for range 5 {
		db, err := sql.Open("sqlite", file)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, db.Close()) })
		provider, err := goose.NewProvider(goose.DialectSQLite3, db, fstest.MapFS{}, goose.WithGoMigrations(slow),
			goose.WithDisableGlobalRegistry(true), goose.WithLocker(latchgoose.New(candidates.Connect(t, s.URL()), name)))
		require.NoError(t, err)
		// The version table is created first: a process that finds it locked retries only after a second.
		_, err = provider.GetDBVersion(t.Context())
		require.NoError(t, err)
		processes.Go(func() {
			_, err := provider.Up(t.Context())
			assert.NoError(t, err)
		})
	}
	processes.Wait()
	require.EqualValues(t, 1, migrated.Load())
	require.Zero(t, s.Do(t, "DBSIZE"))
}

func TestUnlockWithoutLockFails(t *testing.T) {
	t.Parallel()
	l := latchgoose.New(candidates.Connect(t, redistest.Start(t).URL()), redistest.Key(t))
	require.ErrorIs(t, l.Unlock(t.Context(), nil), redlatch.ErrNotHeld)
}
