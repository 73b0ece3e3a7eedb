// This program takes a lock, and finds it in the metrics.
package main

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/promredlatch"
	"github.com/redlatch/redlatch/rlock"
)

func run(ctx context.Context, url string) (err error) {
	registry, metrics := prometheus.NewRegistry(), promredlatch.New()
	if err := registry.Register(metrics); err != nil {
		return err
	}
	client, err := redlatch.Open(ctx, url, redlatch.WithObserver(metrics.Observer()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if err := rlock.New(client, "promredlatch").Do(ctx, func(context.Context) error { return nil }); err != nil {
		return err
	}
	families, err := registry.Gather()
	if err == nil && len(families) == 0 {
		err = errors.New("there are no metrics")
	}
	return err
}
