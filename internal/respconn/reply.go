package respconn

import (
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/transport"
)

// Receive returns the next reply, with *transport.ServerError in place of the client library's
// errors on every level. refusal is set if the whole reply is an error. After err the connection
// is unusable. If conn is not guarded and the server announces a length that exceeds memory,
// the client library panics, which Receive turns into err.
func Receive(conn redis.Conn, timeout time.Duration) (reply any, refusal *transport.ServerError, err error) {
	defer func() {
		if p := recover(); p != nil {
			reply, err = nil, fmt.Errorf("%w: %v", ErrLimit, p)
		}
	}()
	reply, err = redis.ReceiveWithTimeout(conn, timeout)
	if err == nil {
		return plain(reply), nil, nil
	}
	var sent redis.Error
	if errors.As(err, &sent) {
		return nil, &transport.ServerError{Text: string(sent)}, nil
	}
	return nil, nil, err
}

// plain replaces the client library's errors in a reply. It changes arrays in place.
func plain(reply any) any {
	switch r := reply.(type) {
	case []any:
		for i := range r {
			r[i] = plain(r[i])
		}
	case redis.Error:
		return &transport.ServerError{Text: string(r)}
	}
	return reply
}
