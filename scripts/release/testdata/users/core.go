// This program takes a lock of each kind, and leads once.
package main

import (
	"context"
	"errors"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/leader"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
)

func run(ctx context.Context, url string) (err error) {
	client, err := redlatch.Open(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	orders, billing, stock := rlock.New(client, "orders:42"), rfairlock.New(client, "billing-run"), rfencedlock.New(client, "stock")
	work := func(ctx context.Context, hold *rfencedlock.Hold) error {
		if hold.Token() < 1 {
			return fence.ErrLate
		}
		return leader.Run(ctx, client, "stranger", leader.Config{Lead: func(ctx context.Context) error { return ctx.Err() }})
	}
	return orders.Do(ctx, func(ctx context.Context) error {
		return billing.Do(ctx, func(ctx context.Context) error { return stock.Do(ctx, work) })
	})
}
