package fence

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

//go:embed write.lua
var writeScript string

// Redis guards a key in Redis or Valkey: one script checks the token and runs the write. It is
// stateless and safe for concurrent use.
//
// The highest token is stored in redlatch_fence:{key}, or in redlatch_fence::key if key has an opening
// brace, in the same cluster slot as key; a key with braces but no hash tag fails with CROSSSLOT. The
// token never expires, so delete it together with the key, once no old holder can return.
type Redis struct {
	// Eval runs a script on a master with the program's client, and returns the reply: int64,
	// string, []byte or []any. With go-redis:
	//
	//	func(ctx context.Context, script string, keys []string, args ...any) (any, error) {
	//		return client.Eval(ctx, script, keys, args...).Result()
	//	}
	Eval func(ctx context.Context, script string, keys []string, args ...any) (any, error)
}

var errReply = errors.New("fence: unexpected reply from Eval")

func tokenKey(key string) string {
	if strings.Contains(key, "{") {
		return "redlatch_fence::" + key
	}
	return "redlatch_fence:{" + key + "}"
}

// Do runs a command that writes key, unless a higher token has been seen for key, and returns the
// command's reply:
//
//	guard.Do(ctx, hold.Token(), "SET", "orders:42", "shipped")
//
// The key must be the command's only key and its first argument; args follow it. Do returns a
// [*LateError], ErrNoToken, or Eval's error. A command that fails leaves the highest token unchanged.
func (r Redis) Do(ctx context.Context, token int64, command, key string, args ...any) (any, error) {
	if err := check(token); err != nil {
		return nil, err
	}
	all := append([]any{strconv.FormatInt(token, 10), command}, args...)
	reply, err := r.Eval(ctx, writeScript, []string{tokenKey(key), key}, all...)
	if err != nil {
		return nil, err
	}
	parts, _ := reply.([]any)
	if len(parts) == 1 && parts[0] == any(int64(1)) {
		return nil, nil //nolint:nilnil // the reply was nil
	}
	if len(parts) != 2 {
		return nil, fmt.Errorf("%w: %T", errReply, reply)
	}
	switch parts[0] {
	case int64(1):
		return parts[1], nil
	case int64(0):
		highest, err := strconv.ParseInt(fmt.Sprintf("%s", parts[1]), 10, 64)
		if err != nil {
			highest = 0
		}
		return nil, &LateError{Resource: key, Token: token, Highest: highest}
	}
	return nil, fmt.Errorf("%w: %v", errReply, parts[0])
}
