package diagnosis

import (
	"errors"
	"slices"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/protocol"
)

type verdict int

const (
	granted verdict = iota
	refused
	absent       // not available on this server
	unknownRight // could not be tested
)

// trials returns each command in a form that does not change anything: it only reads, does not
// match anything, or has an invalid argument. Servers check permissions before arguments.
func (e *examination) trials() map[string][]any {
	queue, timeouts, latch := codec.QueueKey(e.name), codec.TimeoutKey(e.name), protocol.LatchKey(e.name, "0")
	return map[string][]any{
		"eval":           {"EVAL", probeScript, 1, e.name},
		"evalsha":        {"EVALSHA", redis.NewScript(1, probeScript).Hash(), 1, e.name},
		"ping":           {"PING"},
		"del":            {"DEL", e.name},
		"exists":         {"EXISTS", e.name},
		"pexpire":        {"PEXPIRE", e.name, 1},
		"pttl":           {"PTTL", e.name},
		"type":           {"TYPE", e.name},
		"hget":           {"HGET", e.name, "f"},
		"hset":           {"HSET", e.name, "f", "v", "f"},
		"hexists":        {"HEXISTS", e.name, "f"},
		"hincrby":        {"HINCRBY", e.name, "f", "none"},
		"hkeys":          {"HKEYS", e.name},
		"hdel":           {"HDEL", e.name, "f"},
		"hlen":           {"HLEN", e.name},
		"hgetall":        {"HGETALL", e.name},
		"hmget":          {"HMGET", e.name, "f"},
		"hrandfield":     {"HRANDFIELD", e.name},
		"hscan":          {"HSCAN", e.name, 0},
		"publish":        {"PUBLISH", codec.LockChannel(e.name), "0"},
		"lindex":         {"LINDEX", queue, 0},
		"llen":           {"LLEN", queue},
		"lpop":           {"LPOP", queue},
		"lrange":         {"LRANGE", queue, 0, 0},
		"lrem":           {"LREM", queue, 0, "v"},
		"zscore":         {"ZSCORE", timeouts, "m"},
		"zadd":           {"ZADD", timeouts, "none", "m"},
		"zrem":           {"ZREM", timeouts, "m"},
		"zrange":         {"ZRANGE", timeouts, 0, 0},
		"zincrby":        {"ZINCRBY", timeouts, "none", "m"},
		"zcount":         {"ZCOUNT", timeouts, 0, 0},
		"zrangebyscore":  {"ZRANGEBYSCORE", timeouts, 0, 0},
		"incrby":         {"INCRBY", e.name, "none"},
		"decrby":         {"DECRBY", e.name, "none"},
		"zunionstore":    {"ZUNIONSTORE", timeouts, 0, timeouts},
		"get":            {"GET", latch},
		"set":            {"SET", latch, "0", "PX", 0},
		"getrange":       {"GETRANGE", latch, 0, 0},
		"scan":           {"SCAN", 0, "COUNT", 1},
		"time":           {"TIME"},
		"role":           {"ROLE"},
		"wait":           {"WAIT", 0, 1},
		"pubsub|numsub":  {"PUBSUB", "NUMSUB"},
		"client|id":      {"CLIENT", "ID"},
		"client|info":    {"CLIENT", "INFO"},
		"client|kill":    {"CLIENT", "KILL", "ID", 0},
		"client|setname": {"CLIENT", "SETNAME", "redlatch-doctor"},
	}
}

func (e *examination) command(name string) verdict {
	switch name {
	case "rpush":
		return e.grow("RPUSH", codec.QueueKey(e.name), "v")
	case "sadd":
		return e.grow("SADD", e.name, "v")
	case "incr":
		return e.grow("INCR", protocol.TokenKey(e.name))
	case "decr":
		return e.grow("DECR", protocol.LatchKey(e.name, "0"))
	case "subscribe", "unsubscribe", "psubscribe":
		return e.onListening(func(c redis.Conn) verdict {
			channel := e.name
			if name == "psubscribe" {
				channel = "*"
			}
			_, err := c.Do(strings.ToUpper(name), codec.LockChannel(channel))
			return ruled(err, deniedCommand)
		})
	}
	args, known := e.trials()[name]
	if !known {
		return unknownRight
	}
	return ruled(e.try(args), deniedCommand)
}

func (e *examination) try(args []any) error {
	name, _ := args[0].(string)
	_, err := e.c.Do(name, args[1:]...)
	return err
}

// grow tries a command that always changes something, with ACL DRYRUN or on a key of another type.
func (e *examination) grow(command, key string, values ...any) verdict {
	args := append([]any{command, key}, values...)
	if said, err := redis.String(e.c.Do("ACL", append([]any{"DRYRUN", e.user()}, args...)...)); err == nil {
		return ruled(redis.Error(said), deniedCommand)
	}
	removals := [][]any{{"DEL", key}, {"PEXPIRE", key, 1}}
	if !slices.ContainsFunc(removals, func(remove []any) bool { return ruled(e.try(remove), deniedCommand) == granted }) {
		return unknownRight
	}
	if err := e.block(key); err != nil && !isUnwritable(err) {
		return unknownRight
	}
	v := ruled(e.try(args), deniedCommand)
	for _, remove := range removals {
		_ = e.try(remove) // otherwise, the TTL removes the key
	}
	return v
}

// blockScript does not write anything if the user may not set a TTL.
const blockScript = `redis.call('PEXPIRE', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[1], 'f', 'v')
return redis.call('PEXPIRE', KEYS[1], ARGV[1])`

// block creates a key that is not a list, set or number, with a TTL.
func (e *examination) block(key string) error {
	err := e.try([]any{"SET", key, "v", "PX", probeLease.Milliseconds()})
	if denied(err) == deniedCommand || isUnknown(err) {
		return e.try([]any{"EVAL", blockScript, 1, key, probeLease.Milliseconds()})
	}
	return err
}

func isUnwritable(err error) bool {
	var said redis.Error
	if !errors.As(err, &said) {
		return false
	}
	switch before(said.Error(), " ") {
	case "OOM", "READONLY", "MISCONF", "NOREPLICAS", "MOVED", "ASK", "CLUSTERDOWN":
		return true
	}
	return denied(err) == deniedKey
}

func (e *examination) pattern(p *acl.Pattern) verdict {
	example := p.Example(e.name)
	switch {
	case p.Listened() != "":
		return e.onListening(func(c redis.Conn) verdict {
			_, err := c.Do("PSUBSCRIBE", p.Listened())
			return usable(err, deniedChannel)
		})
	case p.IsChannels():
		if v := usable(e.try([]any{"PUBLISH", example, "0"}), deniedChannel); v != unknownRight {
			return v
		}
		return e.onListening(func(c redis.Conn) verdict {
			_, err := c.Do("SUBSCRIBE", example)
			return usable(err, deniedChannel)
		})
	}
	// Servers check permissions before the type of the key.
	for _, args := range [][]any{
		{"EVAL", probeScript, 1, example},
		{"PTTL", example},
		{"EXISTS", example},
		{"GET", example},
		{"HGET", example, "f"},
		{"LINDEX", example, 0},
		{"DEL", example},
	} {
		if v := usable(e.try(args), deniedKey); v != unknownRight {
			return v
		}
	}
	return unknownRight
}

// onListening uses a separate connection, because it may end up subscribed.
func (e *examination) onListening(try func(redis.Conn) verdict) verdict {
	c, err := e.on.Dial(e.ctx)
	if err != nil {
		return unknownRight
	}
	defer func() { _ = c.Close() }()
	return try(c)
}

type denial int

const (
	deniedNothing denial = iota
	deniedCommand
	deniedKey
	deniedChannel
)

// ruled treats any other error as granted, because servers check permissions first.
func ruled(err error, what denial) verdict {
	switch {
	case denied(err) == what:
		return refused
	case isUnknown(err):
		return absent
	}
	return granted
}

func isUnknown(err error) bool {
	var said redis.Error
	return errors.As(err, &said) && (strings.Contains(said.Error(), "unknown command") || strings.Contains(said.Error(), "unknown subcommand"))
}

// usable is like ruled, but for a key or channel. Its result is unknown if the command itself is
// denied.
func usable(err error, what denial) verdict {
	if denied(err) == deniedCommand || isUnknown(err) {
		return unknownRight
	}
	return ruled(err, what)
}

// denied classifies an error. Servers word it differently, but always name the subject.
func denied(err error) denial {
	var said redis.Error
	if !errors.As(err, &said) {
		return deniedNothing
	}
	text := said.Error()
	switch {
	case strings.Contains(text, "to run the"):
		return deniedCommand
	case !strings.HasPrefix(text, "NOPERM"):
		return deniedNothing
	case strings.Contains(text, "channel"):
		return deniedChannel
	case strings.Contains(text, "key"):
		return deniedKey
	}
	return deniedCommand
}
