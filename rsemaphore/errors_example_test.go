package rsemaphore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/redlatch/redlatch/rsemaphore"
)

func ExampleErrTooMany() {
	ctx := context.Background()
	client, done := open(ctx)
	defer done()

	crawlers := rsemaphore.NewExpirable(client, "crawlers")
	fmt.Println(crawlers.TrySetPermits(ctx, 3))
	_, err := crawlers.Acquire(ctx, 4) // would wait forever
	fmt.Println(errors.Is(err, rsemaphore.ErrTooMany))
	// Output:
	// true <nil>
	// true
}
