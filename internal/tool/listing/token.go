package listing

import (
	"strconv"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/codec"
)

// tokenCall asks for the last token of a lock: GETRANGE is short for the server whatever the
// key holds.
func tokenCall(name string) call { return command("GETRANGE", codec.TokenKey(name), 0, 19) }

// tokenOf reads the reply, 0 when there is no token.
func tokenOf(reply any) int64 {
	token, err := strconv.ParseInt(text(reply), 10, 64)
	if err != nil {
		return 0
	}
	return token
}

// Token returns the last token of a lock, 0 when it has none or the user may not ask. An error
// says that the connection is broken.
func Token(c redis.Conn, name string) (int64, error) {
	replies, err := ask(c, []call{tokenCall(name)})
	if err != nil {
		return 0, err
	}
	return tokenOf(replies[0]), nil
}
