package respconn

import (
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/transport"
)

// Receive is redis.ReceiveWithTimeout, and an error instead of a panic when conn is
// not guarded and the server announces a length that no memory could hold. The
// connection is of no use after that.
func Receive(conn redis.Conn, timeout time.Duration) (reply any, err error) {
	defer func() {
		if p := recover(); p != nil {
			reply, err = nil, fmt.Errorf("%w: %v", ErrLimit, p)
		}
	}()
	return redis.ReceiveWithTimeout(conn, timeout)
}

// Plain replaces the client library's errors inside a reply, on all levels, by the
// transport's. It changes arrays in place.
func Plain(reply any) any {
	switch r := reply.(type) {
	case []any:
		for i := range r {
			r[i] = Plain(r[i])
		}
	case redis.Error:
		return &transport.ServerError{Text: string(r)}
	}
	return reply
}
