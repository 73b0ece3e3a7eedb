package diagnosis

import (
	"errors"
	"strings"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

// Scripts to try. All have a key, because some servers refuse scripts without keys.
const (
	probeScript   = "return 1"
	publishScript = "return redis.call('PUBLISH', ARGV[1], ARGV[2])"
)

// placeTries bounds the search for a name that the server serves.
const placeTries = 200

// placeName names the locks to try. In a cluster the name is in a slot that the server serves, so
// that the server runs the commands itself. A prefix with braces leaves one slot, which one master
// serves.
func (e *examination) placeName() {
	for range placeTries {
		e.name = e.prefix + "redlatch-doctor:" + uuid.NewString()[:8]
		if !isElsewhere(e.try([]any{"PTTL", e.name})) {
			return
		}
	}
	e.elsewhere = true
}

// isElsewhere reports whether an error names another server of the cluster.
func isElsewhere(err error) bool {
	var said redis.Error
	return errors.As(err, &said) && (strings.HasPrefix(said.Error(), "MOVED ") || strings.HasPrefix(said.Error(), "ASK "))
}

// scripts runs a script, by its text and by its checksum.
func (e *examination) scripts() Finding {
	// A user with EVAL may lack SCRIPT LOAD, which locks do not need.
	for _, command := range [][]any{
		{"EVAL", probeScript, 1, e.name},
		{"EVALSHA", redis.NewScript(1, probeScript).Hash(), 1, e.name},
	} {
		err := e.try(command)
		if err == nil || isUnwritable(err) {
			continue
		}
		e.scriptless = true
		advice := "Locks are scripts: without them nothing works."
		if denied(err) == deniedCommand {
			advice = "Locks are scripts: the user needs +eval and +evalsha."
		}
		return bad(advice, "%s fails: %s", command[0], shortError(err))
	}
	return good("EVAL and EVALSHA work")
}

// scriptKeys tries a script that uses a key that it does not declare.
func (e *examination) scriptKeys() Finding {
	err := e.try([]any{"EVAL", luasrc.UndeclaredKey.Text(), 1, e.name})
	if f, known := e.untried(err); known {
		return f
	}
	if err != nil {
		return Finding{
			Level: e.lacking(acl.ReadWrite), Found: "a script may only use keys that it declares: " + shortError(err),
			Advice: "Read/write locks do not work: their scripts use keys of other readers. Other locks, semaphores and latches work.",
		}
	}
	return good("a script may use keys that it does not declare")
}

// scriptMessages tries a script that publishes a message.
func (e *examination) scriptMessages() Finding {
	err := e.try([]any{"EVAL", publishScript, 1, e.name, codec.LockChannel(e.name), codec.MessageUnlock})
	if f, known := e.untried(err); known {
		return f
	}
	if e.mute = err != nil; e.mute {
		return bad("A release frees the lock, but fails and wakes no waiter: waiters find a free lock by polling.",
			"a script cannot publish: %s", shortError(err))
	}
	return good("a script can publish")
}

// untried returns the finding about a script that could not show anything, if that is so.
func (e *examination) untried(err error) (Finding, bool) {
	switch {
	case e.scriptless:
		return unknown("not tried: see scripts above"), true
	case connect.Denied(err):
		return unknown("not tried: see the rights below"), true
	case isUnwritable(err):
		return unknown("not tried: %s", shortError(err)), true
	}
	return Finding{}, false
}
