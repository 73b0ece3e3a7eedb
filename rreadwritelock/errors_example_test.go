package rreadwritelock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/redlatch/redlatch/rreadwritelock"
)

func ExampleErrUpgrade() {
	ctx := context.Background()
	client, done := open(ctx)
	defer done()

	catalogue := rreadwritelock.New(client, "catalogue")
	err := catalogue.Read().Do(ctx, func(ctx context.Context) error {
		_, err := catalogue.Write().Lock(ctx) // would wait for its own reader
		return err
	})
	fmt.Println(errors.Is(err, rreadwritelock.ErrUpgrade))
	// Output: true
}
