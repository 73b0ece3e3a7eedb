package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
)

// ship writes an order's state under a token.
func (db database) ship(ctx context.Context, state string, token int64) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if err := db.fences.Check(ctx, tx, "orders:42", token); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE orders SET state = '"+state+"' WHERE id = '42'"); err != nil {
		return err
	}
	return tx.Commit()
}

func (db database) state(t *testing.T) (state string) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT state FROM orders WHERE id = '42'").Scan(&state))
	return state
}

// U12: a holder that is paused comes back when another has written, and is refused.
func TestU12APausedHolderComesBackToADatabaseAndIsRefused(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db database) {
		t.Helper()
		s := redistest.Shared(t)
		name := redistest.Key(t)
		a, err := rfencedlock.New(connect(t, s.URL()), name).Lock(within(t), rlock.WithLease(3*time.Second))
		require.NoError(t, err)
		require.NoError(t, db.ship(within(t), "packed by a", a.Token()))

		// A stands still until its lease is over; B takes the lock.
		b, err := rfencedlock.New(connect(t, s.URL()), name).Lock(within(t))
		require.NoError(t, err)
		require.NoError(t, db.ship(within(t), "shipped by b", b.Token()))

		err = db.ship(within(t), "shipped by a", a.Token())
		require.ErrorIs(t, err, fence.ErrLate)
		var late *fence.LateError
		require.ErrorAs(t, err, &late)
		require.Equal(t, fence.LateError{Resource: "orders:42", Token: a.Token(), Highest: b.Token()}, *late)
		require.Equal(t, "shipped by b", db.state(t))
		require.NoError(t, db.ship(within(t), "delivered by b", b.Token()), "a holder may write more than once")
		require.Equal(t, "delivered by b", db.state(t))
		require.NoError(t, b.Unlock())
	})
}

// The dangerous moment: A has been accepted, and has not committed when B comes.
func TestAHigherTokenWaitsForATransactionThatWasAccepted(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db database) {
		t.Helper()
		for _, token := range []int64{1, 1} { // the first write of a resource, and a later one
			tx, err := db.BeginTx(within(t), nil)
			require.NoError(t, err)
			require.NoError(t, db.fences.Check(within(t), tx, "orders:42", token))
			_, err = tx.ExecContext(within(t), "UPDATE orders SET state = 'a' WHERE id = '42'")
			require.NoError(t, err)
			higher := make(chan error, 1)
			go func() { higher <- db.ship(within(t), "b", token+1) }()
			require.NoError(t, tx.Commit())
			if err := <-higher; err != nil {
				require.NotErrorIs(t, err, fence.ErrLate)
				require.NoError(t, db.ship(within(t), "b", token+1), "both were first at the same time")
			}
			require.Equal(t, "b", db.state(t))
			_, err = db.ExecContext(within(t), "UPDATE fences SET token = 1")
			require.NoError(t, err)
		}
	})
}

func TestAWriteWithoutATokenIsRefused(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db database) {
		t.Helper()
		for _, none := range []int64{0, -1} {
			require.ErrorIs(t, db.ship(within(t), "none", none), fence.ErrNoToken)
		}
		require.Equal(t, "paid", db.state(t))
	})
}

// Many writers with tokens in any order: what is written last has the highest token of those
// that were accepted, and they were accepted in order.
func TestWhatWasAcceptedIsInTheOrderOfTheTokens(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db database) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), "CREATE TABLE history (n BIGINT, token BIGINT)")
		require.NoError(t, err)
		const writers = 40
		var all sync.WaitGroup
		failed := make(chan error, writers)
		for _, i := range rand.Perm(writers) {
			all.Go(func() { failed <- db.append(within(t), int64(i+1)) })
		}
		all.Wait()
		accepted := 0
		for range writers {
			if err := <-failed; err == nil {
				accepted++
			} else {
				require.ErrorIs(t, err, fence.ErrLate)
			}
		}
		rows, err := db.QueryContext(t.Context(), "SELECT token FROM history ORDER BY n")
		require.NoError(t, err)
		defer func() { require.NoError(t, rows.Close()) }()
		var last int64
		for rows.Next() {
			var token int64
			require.NoError(t, rows.Scan(&token))
			require.Greater(t, token, last)
			last, accepted = token, accepted-1
		}
		require.NoError(t, rows.Err())
		require.Zero(t, accepted)
		require.EqualValues(t, writers, last, "the highest is always accepted")
	})
}

// append writes down a token as the next one. What is not a refusal is tried again after a
// pause: at once, first writes would deadlock again on MariaDB.
func (db database) append(ctx context.Context, token int64) error {
	for {
		err := db.tryAppend(ctx, token)
		if err == nil || errors.Is(err, fence.ErrLate) || ctx.Err() != nil {
			return err
		}
		time.Sleep(rand.N(100 * time.Millisecond))
	}
}

func (db database) tryAppend(ctx context.Context, token int64) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if err := db.fences.Check(ctx, tx, "history", token); err != nil {
		return err
	}
	next := "INSERT INTO history SELECT COUNT(*) + 1, ? FROM history"
	if db.fences.Dollars {
		next = "INSERT INTO history SELECT COUNT(*) + 1, CAST($1 AS BIGINT) FROM history"
	}
	if _, err := tx.ExecContext(ctx, next, token); err != nil {
		return err
	}
	return tx.Commit()
}
