package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/rfencedlock"
)

// ship runs the statements that write, and commits.
func ship(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, "UPDATE orders SET state = 'shipped' WHERE id = 42")
	return errors.Join(err, tx.Commit())
}

// The check and the write are in one transaction.
func ExampleTable_Check() {
	//nolint:errcheck // kept short
	shipOrders := func(ctx context.Context, client *redlatch.Client, db *sql.DB) error {
		orders, fences := rfencedlock.New(client, "orders:42"), fence.Table{Dollars: true} // $1, $2 …
		return orders.Do(ctx, func(ctx context.Context, hold *rfencedlock.Hold) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback() // does nothing after Commit
			if err := fences.Check(ctx, tx, "orders:42", hold.Token()); err != nil {
				return err // fence.ErrLate: another holder has written since
			}
			return ship(ctx, tx) // and commits
		})
	}
	_ = shipOrders
}

// The guard runs its script with the program's own client.
func ExampleRedis_Do() {
	type evaluate = func(ctx context.Context, script string, keys []string, args ...any) (any, error)
	shipOrder := func(ctx context.Context, lock *rfencedlock.Lock, eval evaluate) error {
		guard := fence.Redis{Eval: eval}
		return lock.Do(ctx, func(ctx context.Context, hold *rfencedlock.Hold) error {
			_, err := guard.Do(ctx, hold.Token(), "SET", "orders:42", "shipped")
			return err // fence.ErrLate: another holder has written since
		})
	}
	_ = shipOrder
}

// The client sends the token with each request, and the server rejects tokens below the highest
// seen.
func ExampleHandler() {
	orders := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}) // writes the order
	server := &fence.Handler{Next: orders}

	put := func(token int64) int {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodPut, "/orders/42", nil)
		fence.SetHeader(r.Header, token) // the hold's
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		return w.Code
	}
	fmt.Println(put(8), put(7), put(8))
	// Output: 200 412 200
}
