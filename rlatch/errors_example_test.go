package rlatch_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/rlatch"
)

func ExampleErrNotOpen() {
	ctx, cancel := context.WithCancel(context.Background())
	client, done := open(ctx)
	defer done()

	imports := rlatch.New(client, "imports:2026-11-26")
	fmt.Println(imports.TrySetCount(ctx, 1))
	go func() {
		for client.Stats().Waiting == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	err := imports.Wait(ctx)
	fmt.Println(errors.Is(err, rlatch.ErrNotOpen), errors.Is(err, context.Canceled))
	// Output:
	// true <nil>
	// true true
}
