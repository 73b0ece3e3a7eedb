// This program takes a lock over a client of go-redis.
package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/adapter/goredis"
	"github.com/redlatch/redlatch/rlock"
)

func run(ctx context.Context, url string) (err error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		return err
	}
	rdb := redis.NewClient(options)
	defer func() { err = errors.Join(err, rdb.Close()) }()
	client, err := goredis.New(ctx, rdb)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	return rlock.New(client, "goredis").Do(ctx, func(ctx context.Context) error {
		return rdb.Set(ctx, "goredis:ran", "yes", 0).Err()
	})
}
