package goredis

import (
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/transport"
)

// serverError turns an error that a server sent, and go-redis returned, into the
// transport's type of it. Others stay what they are.
func serverError(err error) error {
	var sent redis.Error
	if errors.As(err, &sent) && !errors.Is(err, redis.Nil) {
		return &transport.ServerError{Text: sent.Error()}
	}
	return err
}
