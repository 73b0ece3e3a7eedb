package doctor

import (
	"errors"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/codec"
)

// trial is a command in a form that changes nothing, whether by reading, by finding
// nothing there, or by an argument that is refused after the rights were looked at.
type trial struct {
	right string // as in ACL SETUSER, without the plus
	args  []any  // the command
}

// need is what a kind of use needs.
type need struct {
	trials []trial
	keys   []func(name string) string // what of a name's must be accessible
}

// lacking are the rights that a user has not, in the words of ACL SETUSER.
type lacking []string

func (l lacking) String() string { return strings.Join(l, " ") }

func key(name string) string { return name }

// latchKey is what latches of a name begin with.
func latchKey(name string) string { return codec.LatchKey(name, "") }

// plainNeed is what the plain lock needs, with the channel as a key, too: scripts
// name it so.
func (e *exam) plainNeed() need {
	return need{
		trials: []trial{
			{"eval", []any{"EVAL", probeScript, 0}},
			{"evalsha", []any{"EVALSHA", redis.NewScript(0, probeScript).Hash(), 0}},
			{"ping", []any{"PING"}},
			{"del", []any{"DEL", e.name}},
			{"exists", []any{"EXISTS", e.name}},
			{"pexpire", []any{"PEXPIRE", e.name, 1}},
			{"pttl", []any{"PTTL", e.name}},
			{"hget", []any{"HGET", e.name, "f"}},
			{"hset", []any{"HSET", e.name, "f", "v", "f"}},
			{"hexists", []any{"HEXISTS", e.name, "f"}},
			{"hincrby", []any{"HINCRBY", e.name, "f", "none"}},
			{"hkeys", []any{"HKEYS", e.name}},
			{"hgetall", []any{"HGETALL", e.name}},
			{"publish", []any{"PUBLISH", codec.LockChannel(e.name), "0"}},
		},
		keys: []func(string) string{key, codec.LockChannel},
	}
}

// fairNeed is what the fair lock needs besides.
func (e *exam) fairNeed() need {
	queue, timeouts := codec.QueueKey(e.name), codec.TimeoutKey(e.name)
	return need{
		trials: []trial{
			{"lindex", []any{"LINDEX", queue, 0}},
			{"lpop", []any{"LPOP", queue}},
			{"lrange", []any{"LRANGE", queue, 0, 0}},
			{"lrem", []any{"LREM", queue, 0, "v"}},
			{"zscore", []any{"ZSCORE", timeouts, "m"}},
			{"zadd", []any{"ZADD", timeouts, "none", "m"}},
			{"zrem", []any{"ZREM", timeouts, "m"}},
			{"zrange", []any{"ZRANGE", timeouts, 0, 0}},
			{"zincrby", []any{"ZINCRBY", timeouts, "none", "m"}},
			{"time", []any{"TIME"}},
		},
		keys: []func(string) string{codec.QueueKey, codec.TimeoutKey},
	}
}

// moreNeed is what makes some things better.
func (e *exam) moreNeed() need {
	return need{
		trials: []trial{
			{"get", []any{"GET", codec.LatchKey(e.name, "0")}},
			{"set", []any{"SET", codec.LatchKey(e.name, "0"), "0", "PX", 0}},
			{"client|id", []any{"CLIENT", "ID"}},
			{"client|kill", []any{"CLIENT", "KILL", "ID", 0}},
			{"client|setname", []any{"CLIENT", "SETNAME", "redlatch-doctor"}},
			{"pubsub|numsub", []any{"PUBSUB", "NUMSUB"}},
			{"role", []any{"ROLE"}},
		},
		keys: []func(string) string{latchKey},
	}
}

// plainRights looks at what the plain lock needs.
func (e *exam) plainRights() Finding {
	lacks := append(e.missing(e.plainNeed()), e.missingListening()...)
	if len(lacks) == 0 {
		return good("user %s has all that plain locks need, for names %s", e.user(), e.names())
	}
	f := bad("Grant what is missing, as an administrator:", "user %s lacks %s, which plain locks need", e.user(), lacks)
	f.Command = e.grant(lacks)
	return f
}

// fairRights looks at what the fair lock needs.
func (e *exam) fairRights() Finding {
	lacks := append(e.missing(e.fairNeed()), e.missingPush()...)
	if len(lacks) == 0 {
		return good("user %s has all that fair locks need", e.user())
	}
	f := warning("Grant what is missing where fair locks are used:", "user %s lacks %s, which fair locks need", e.user(), lacks)
	f.Command = e.grant(lacks)
	return f
}

// missingPush tries RPUSH, the one that no argument keeps from changing something,
// where it can be undone.
func (e *exam) missingPush() lacking {
	queue := codec.QueueKey(e.name)
	_, noDel := e.c.Do("DEL", queue)
	_, noPop := e.c.Do("LPOP", queue)
	if denied(noDel) != deniedCommand || denied(noPop) != deniedCommand {
		_, err := e.c.Do("RPUSH", queue, "v")
		_, _ = e.c.Do("LPOP", queue)
		_, _ = e.c.Do("DEL", queue)
		if denied(err) != deniedCommand {
			return nil
		}
	}
	return lacking{"+rpush"}
}

// moreRights looks at what can be done without.
func (e *exam) moreRights() Finding {
	lacks := e.missing(e.moreNeed())
	if len(lacks) == 0 {
		return good("user %s has those that make some things better, too", e.user())
	}
	f := good("user %s lacks %s, which can be done without", e.user(), lacks)
	f.Advice = "docs/operations.md says what each is good for."
	f.Command = e.grant(lacks)
	return f
}

// missing tries what a need consists of.
func (e *exam) missing(n need) lacking {
	var lacks lacking
	for _, t := range n.trials {
		if name, ok := t.args[0].(string); ok {
			if _, err := e.c.Do(name, t.args[1:]...); denied(err) == deniedCommand {
				lacks = append(lacks, "+"+t.right)
			}
		}
	}
	for _, of := range n.keys {
		if !e.mayUse(of(e.name)) {
			lacks = append(lacks, "~"+e.pattern(of))
		}
	}
	return lacks
}

// mayUse tries a key with a command that the user may use. Without one the key counts
// as missing: to grant what somebody has does no harm.
func (e *exam) mayUse(key string) bool {
	for _, command := range [][]any{{"EVAL", probeScript, 1, key}, {"DEL", key}, {"PTTL", key}, {"EXISTS", key}} {
		if name, ok := command[0].(string); ok {
			if _, err := e.c.Do(name, command[1:]...); denied(err) != deniedCommand {
				return denied(err) != deniedKey
			}
		}
	}
	return false
}

// missingListening tries to listen, and whether the channel may be used at all.
func (e *exam) missingListening() lacking {
	c, err := e.srv.Dial(e.ctx)
	if err != nil {
		return nil
	}
	defer func() { _ = c.Close() }() // it only listened
	channel := codec.LockChannel(e.name)
	_, published := e.c.Do("PUBLISH", channel, "0")
	_, subscribed := c.Do("SUBSCRIBE", channel)
	_, unsubscribed := c.Do("UNSUBSCRIBE", channel)
	var lacks lacking
	if denied(subscribed) == deniedCommand {
		lacks = append(lacks, "+subscribe")
	}
	if denied(unsubscribed) == deniedCommand {
		lacks = append(lacks, "+unsubscribe")
	}
	refused := max(denied(published), denied(subscribed))
	if refused == deniedChannel || denied(published) == deniedCommand && denied(subscribed) == deniedCommand {
		lacks = append(lacks, "&"+e.pattern(codec.LockChannel))
	}
	return lacks
}

// denial is what is denied to a user.
type denial int

const (
	deniedNothing denial = iota
	deniedCommand
	deniedKey
	deniedChannel
)

// denied reads an error. Servers word it differently, but all of them name what it is
// about.
func denied(err error) denial {
	var said redis.Error
	if !errors.As(err, &said) || !strings.HasPrefix(said.Error(), "NOPERM") {
		return deniedNothing
	}
	switch text := said.Error(); {
	case strings.Contains(text, "to run the"):
		return deniedCommand
	case strings.Contains(text, "channel"):
		return deniedChannel
	case strings.Contains(text, "key"):
		return deniedKey
	}
	return deniedCommand
}

// pattern returns the pattern of what belongs to names with the prefix.
func (e *exam) pattern(of func(name string) string) string {
	whole := of(globbed(e.prefix) + "*")
	if i := strings.LastIndex(whole, "*"); i >= 0 {
		whole = whole[:i+1]
	}
	return whole
}

// globbed returns text that a pattern takes for itself.
func globbed(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}

// names says which names were looked at.
func (e *exam) names() string { return globbed(e.prefix) + "*" }

// user returns who we are on the server.
func (e *exam) user() string {
	name, err := redis.String(e.c.Do("ACL", "WHOAMI"))
	if err != nil {
		return e.srv.User()
	}
	return name
}

// grant returns what to send to give the user what it lacks.
func (e *exam) grant(lacks lacking) string { return "ACL SETUSER " + e.user() + " " + lacks.String() }
