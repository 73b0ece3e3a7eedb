package redisconn_test

import (
	"context"
	"slices"

	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/transport"
)

// counted breaks Listeners.
type counted struct {
	*redisconn.Redigo
	listeners func(ctx context.Context, r *redisconn.Redigo, channels []string) ([]int64, error)
}

func (c counted) Listeners(ctx context.Context, channels ...string) ([]int64, error) {
	return c.listeners(ctx, c.Redigo, channels)
}

func counts(listeners func(context.Context, *redisconn.Redigo, []string) ([]int64, error)) func(*redisconn.Redigo) transport.Transport {
	return func(r *redisconn.Redigo) transport.Transport { return counted{r, listeners} }
}

func zeros(ctx context.Context, r *redisconn.Redigo, channels []string) ([]int64, error) {
	if counts, err := r.Listeners(ctx, channels...); err == nil {
		return counts, nil
	}
	return make([]int64, len(channels)), nil
}

func backwards(ctx context.Context, r *redisconn.Redigo, channels []string) ([]int64, error) {
	counts, err := r.Listeners(ctx, channels...)
	slices.Reverse(counts)
	return counts, err
}

func heedless(ctx context.Context, r *redisconn.Redigo, channels []string) ([]int64, error) {
	return r.Listeners(context.WithoutCancel(ctx), channels...)
}

func firstOnly(ctx context.Context, r *redisconn.Redigo, channels []string) ([]int64, error) {
	counts, err := r.Listeners(ctx, channels[:min(len(channels), 100)]...)
	return append(counts, make([]int64, len(channels)-len(counts))...), err
}
