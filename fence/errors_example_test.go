package fence_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/fence"
)

// guarded returns a guard for keys on a server in this process, and a function that closes it.
func guarded() (guard fence.Redis, stop func()) {
	srv, err := embedded.Start(embedded.WithInProcess())
	if err != nil {
		log.Panic(err)
	}
	conn, err := srv.Dial(context.Background())
	if err != nil {
		log.Panic(err)
	}
	eval := func(_ context.Context, script string, keys []string, args ...any) (any, error) {
		return conn.Do("EVAL", redis.Args{}.Add(script, len(keys)).AddFlat(keys).Add(args...)...)
	}
	return fence.Redis{Eval: eval}, func() { _ = conn.Close(); srv.Close() }
}

func ExampleErrLate() {
	guard, stop := guarded()
	defer stop()
	ctx := context.Background()

	_, err := guard.Do(ctx, 8, "SET", "orders:42", "shipped")
	fmt.Println(err)
	_, err = guard.Do(ctx, 7, "SET", "orders:42", "packed") // an earlier holder was paused
	fmt.Println(errors.Is(err, fence.ErrLate))
	// Output:
	// <nil>
	// true
}

func ExampleLateError() {
	guard, stop := guarded()
	defer stop()
	ctx := context.Background()

	_, err := guard.Do(ctx, 8, "SET", "orders:42", "shipped")
	fmt.Println(err)
	_, err = guard.Do(ctx, 7, "SET", "orders:42", "packed")
	var late *fence.LateError
	if errors.As(err, &late) {
		fmt.Printf("%s: %d is below %d\n", late.Resource, late.Token, late.Highest)
	}
	// Output:
	// <nil>
	// orders:42: 7 is below 8
}

func ExampleErrNoToken() {
	guard, stop := guarded()
	defer stop()

	var token int64 // not from a hold
	_, err := guard.Do(context.Background(), token, "SET", "orders:42", "shipped")
	fmt.Println(errors.Is(err, fence.ErrNoToken))
	// Output: true
}
