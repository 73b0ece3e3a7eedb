// Command fencing shows what to do about ErrLost if concurrent writes do harm: the resource must
// reject the write of a worker that is too late. Here, each row has a version. A writer sends the
// version that it has read, and the row is changed only if it still has that version. The lock
// still saves other workers from doing work that is rejected.
//
// Worker A acquires the lock for three seconds, reads a row and pauses. Its lease expires, and B
// acquires the lock and writes. When A continues, its write is rejected. Copy it into your program.
//
//	go run ./examples/fencing redis://localhost:6379
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

var errStale = errors.New("the order was changed by another worker")

type order struct {
	state   string
	version int64
}

// table is a placeholder for a database table.
type table struct {
	mu   sync.Mutex // guards rows
	rows map[string]order
}

// read is like SELECT state, version FROM orders WHERE id = ?
func (t *table) read(id string) order {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows[id]
}

// update is like UPDATE orders SET state = ?, version = version + 1 WHERE id = ? AND version = ? It
// returns an error if no row was changed.
func (t *table) update(id, state string, read order) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows[id].version != read.version {
		return errStale
	}
	t.rows[id] = order{state, read.version + 1}
	return nil
}

func main() {
	url := "redis://localhost:6379"
	if len(os.Args) > 1 {
		url = os.Args[1]
	}
	orders := &table{rows: map[string]order{"42": {"paid", 1}}}
	if err := run(context.Background(), url, orders); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("order 42: %s, version %d\n", orders.read("42").state, orders.read("42").version)
}

// run lets A and B work on the same order.
func run(ctx context.Context, url string, orders *table) error {
	client, err := redlatch.Open(ctx, url)
	if err != nil {
		return err
	}
	lock := rlock.New(client, "fencing-example:42")
	hasRead, goOn := make(chan struct{}), make(chan struct{})
	late := make(chan error, 1)
	go func() {
		late <- lock.Do(ctx, func(context.Context) error {
			row := orders.read("42")
			close(hasRead)
			<-goOn // paused
			return orders.update("42", "shipped by A", row)
		}, rlock.WithLease(3*time.Second))
	}()
	select {
	case <-hasRead:
	case err := <-late:
		return errors.Join(err, client.Close())
	}
	err = lock.Do(ctx, func(context.Context) error {
		return orders.update("42", "shipped by B", orders.read("42"))
	})
	close(goOn)
	return errors.Join(err, verdict(<-late), client.Close())
}

// verdict checks that the late worker has both errors, one because the resource rejected its write
// and one because its lock was lost.
func verdict(err error) error {
	switch {
	case errors.Is(err, errStale) && errors.Is(err, redlatch.ErrLost):
		fmt.Println("A was late and was rejected:", errStale)
		return nil
	case err == nil:
		return errors.New("the late worker was not late")
	}
	return err
}
