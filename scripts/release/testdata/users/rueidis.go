// This program takes a lock over a client of rueidis.
package main

import (
	"context"
	"errors"

	"github.com/redis/rueidis"

	latchrueidis "github.com/redlatch/redlatch/adapter/rueidis"
	"github.com/redlatch/redlatch/rlock"
)

func run(ctx context.Context, url string) (err error) {
	option, err := rueidis.ParseURL(url)
	if err != nil {
		return err
	}
	rdb, err := rueidis.NewClient(option)
	if err != nil {
		return err
	}
	defer rdb.Close()
	client, err := latchrueidis.New(ctx, rdb)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	return rlock.New(client, "rueidis").Do(ctx, func(ctx context.Context) error {
		return rdb.Do(ctx, rdb.B().Set().Key("rueidis:ran").Value("yes").Build()).Error()
	})
}
