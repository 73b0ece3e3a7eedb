package respconn

import (
	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/transport"
)

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
