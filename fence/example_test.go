package fence_test

import (
	"context"
	"database/sql"
	"net/http"

	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/rfencedlock"
)

// The check and the write are in one transaction.
func ExampleTable_Check() {
	var (
		ctx    context.Context
		db     *sql.DB
		lock   *rfencedlock.Lock
		fences = fence.Table{Dollars: true} // PostgreSQL
	)
	_ = lock.Do(ctx, func(ctx context.Context, hold *rfencedlock.Hold) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing after Commit
		if err := fences.Check(ctx, tx, "orders:42", hold.Token()); err != nil {
			return err // fence.ErrLate: another holder has written since
		}
		if _, err := tx.ExecContext(ctx, "UPDATE orders SET state = 'shipped' WHERE id = 42"); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// The guard runs its script by the client that the program has.
func ExampleRedis_Do() {
	var (
		ctx  context.Context
		lock *rfencedlock.Lock
		eval func(ctx context.Context, script string, keys []string, args ...any) (any, error)
	)
	guard := fence.Redis{Eval: eval}
	_ = lock.Do(ctx, func(ctx context.Context, hold *rfencedlock.Hold) error {
		_, err := guard.Do(ctx, hold.Token(), "SET", "orders:42", "shipped")
		return err // fence.ErrLate: another holder has written since
	})
}

// The client sends the token with each request, and the server refuses the late ones.
func ExampleHandler() {
	var orders http.Handler // writes what it is asked to
	http.Handle("/orders/", &fence.Handler{Next: orders})

	// The client, with the hold's token:
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPut, "http://orders/orders/42", nil)
	if err != nil {
		return
	}
	fence.SetHeader(request.Header, 7)
}
