// Package readers contains only correct code, because read locks do not exclude each other.
package readers

import (
	"context"

	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

func work(ctx context.Context) error { return ctx.Err() }

type books struct{ read *rlock.Lock }

func open(rw *rreadwritelock.Lock) books { return books{rw.Read()} }

func (b books) twice(ctx context.Context) error {
	hold, err := b.read.Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Unlock()
	return b.read.Do(ctx, work)
}

func nested(ctx context.Context, rw *rreadwritelock.Lock) error {
	return rw.Read().Do(ctx, func(context.Context) error {
		return rw.Read().Do(context.Background(), work)
	})
}
