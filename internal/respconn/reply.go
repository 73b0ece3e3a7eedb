package respconn

import (
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/transport"
)

// Receive returns the next reply. Errors inside arrays are converted to *transport.ServerError. If
// the reply itself is an error, it is returned as refusal. If err is not nil, the connection is
// unusable. If conn is not guarded, the client library may panic because of an announced length.
// Receive returns that panic as err.
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

// plain replaces the client library's errors. It changes arrays in place.
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
