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

// Redis is a guard for what Redis or Valkey has: one script checks the token and runs the
// command that writes. It keeps no state and is safe for concurrent use.
type Redis struct {
	// Eval runs a script by the client that the program has, and returns its reply: numbers
	// as int64, texts as string or []byte, arrays as []any. With go-redis:
	//
	//	func(ctx context.Context, script string, keys []string, args ...any) (any, error) {
	//		return client.Eval(ctx, script, keys, args...).Result()
	//	}
	//
	// It must write to a master.
	Eval func(ctx context.Context, script string, keys []string, args ...any) (any, error)
}

// errReply says that a reply is not one of the script's.
var errReply = errors.New("fence: Eval returned no reply of the script")

// TokenKey returns the key that remembers the highest token of a key: redlatch_fence:{key}, or
// redlatch_fence::key for a key with an opening brace. It is in the same slot of a cluster,
// unless the key has an opening brace and no hash tag, or a closing brace alone: the cluster
// refuses such a key with CROSSSLOT. It has no time to live. Delete it with the key it guards,
// when no holder can come back.
func TokenKey(key string) string {
	if strings.Contains(key, "{") {
		return "redlatch_fence::" + key
	}
	return "redlatch_fence:{" + key + "}"
}

// Do runs a command that writes key, such as
//
//	guard.Do(ctx, hold.Token(), "SET", "orders:42", "shipped")
//
// unless a higher token has been seen for that key, and returns the command's reply. Args are
// what stands behind the key. The command must have its only key as the first argument. It
// returns a [*LateError], ErrNoToken, or Eval's error: a command that fails leaves the highest
// token as it was.
func (r Redis) Do(ctx context.Context, token int64, command, key string, args ...any) (any, error) {
	if err := check(token); err != nil {
		return nil, err
	}
	all := append([]any{strconv.FormatInt(token, 10), command}, args...)
	reply, err := r.Eval(ctx, writeScript, []string{TokenKey(key), key}, all...)
	if err != nil {
		return nil, err
	}
	parts, _ := reply.([]any)
	if len(parts) == 1 && parts[0] == any(int64(1)) {
		return nil, nil //nolint:nilnil // the command's reply was nil
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
