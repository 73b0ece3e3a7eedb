package diagnosis

import (
	"errors"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// The scripts use a key because some servers reject scripts without keys.
const (
	probeScript   = "return 1"
	publishScript = "return redis.call('PUBLISH', ARGV[1], ARGV[2])"
)

const placeTries = 200

// placeName chooses a name that this master serves. If the prefix contains a hash tag, there may be none.
func (e *examination) placeName() {
	for range placeTries {
		e.name = e.prefix + "redlatch-doctor:" + uuid.NewString()[:8]
		if !isElsewhere(e.try([]any{"PTTL", e.name})) {
			return
		}
	}
	e.elsewhere = true
}

func isElsewhere(err error) bool {
	var said redis.Error
	return errors.As(err, &said) && (strings.HasPrefix(said.Error(), "MOVED ") || strings.HasPrefix(said.Error(), "ASK "))
}

func (e *examination) scripts() Finding {
	// Locks do not use SCRIPT LOAD.
	for _, command := range [][]any{
		{"EVAL", probeScript, 1, e.name},
		{"EVALSHA", redis.NewScript(1, probeScript).Hash(), 1, e.name},
	} {
		err := e.try(command)
		if err == nil || isUnwritable(err) {
			continue
		}
		e.scriptless = true
		advice := "Locks are Lua scripts and do not work without them."
		if denied(err) == deniedCommand {
			advice = "Locks are Lua scripts: the user needs +eval and +evalsha."
		}
		return bad(advice, "%s fails: %s", command[0], shortError(err))
	}
	return good("EVAL and EVALSHA work")
}

func (e *examination) scriptKeys() Finding {
	err := e.try([]any{"EVAL", luasrc.UndeclaredKey.Text(), 1, e.name})
	if f, known := e.untried(err); known {
		return f
	}
	if err != nil {
		return Finding{
			Level: e.lacking(acl.ReadWrite), Found: "scripts may use only declared keys: " + shortError(err),
			Advice: "Read/write locks do not work: their scripts use undeclared keys of other readers. Other locks, semaphores and latches work.",
		}
	}
	return good("scripts may use undeclared keys")
}

func (e *examination) scriptMessages() Finding {
	err := e.try([]any{"EVAL", publishScript, 1, e.name, codec.LockChannel(e.name), protocol.MessageUnlock})
	if f, known := e.untried(err); known {
		return f
	}
	if e.mute = err != nil; e.mute {
		return bad("Unlock frees the lock but returns an error and wakes no waiter: waiters find the free lock by polling.",
			"scripts cannot publish: %s", shortError(err))
	}
	return good("scripts can publish")
}

func (e *examination) untried(err error) (Finding, bool) {
	switch {
	case e.scriptless:
		return unknown("not tested: see scripts above"), true
	case connect.Denied(err):
		return unknown("not tested: see the rights below"), true
	case isUnwritable(err):
		return unknown("not tested: %s", shortError(err)), true
	}
	return Finding{}, false
}

func (e *examination) lock() Finding {
	took, err := e.pair(rlock.New(e.client, e.name))
	switch {
	case e.isReplica():
		return bad("Nothing works without locks: see server above.", "not tested: %s", onReplica)
	case err != nil:
		e.full = isOOM(err)
		return bad(andThen("Nothing works without locks", e.seeAlso(err)), "cannot acquire and release a lock: %s", shortError(err))
	}
	return good("acquired and released in %s", took)
}

const onReplica = "this is a replica, which rejects writes"

func (e *examination) isReplica() bool { return e.info["role"] == "slave" }

func isOOM(err error) bool { return before(connect.Reason(err), " ") == "OOM" }

func (e *examination) seeAlso(err error) string {
	switch before(connect.Reason(err), " ") {
	case "OOM":
		return "see eviction below."
	case "READONLY":
		return "see server above."
	case "MISCONF":
		return "see persistence below."
	case "NOREPLICAS":
		return "see replicas below."
	case "CLUSTERDOWN", "TRYAGAIN":
		return "see slots above."
	}
	switch {
	case e.scriptless && !connect.Denied(err):
		return "see scripts above."
	case e.mute:
		return "see script messages above."
	case connect.Denied(err):
		return "see the rights below."
	}
	return connect.Remedy(err)
}

func andThen(what, next string) string {
	if next == "" {
		return what + "."
	}
	return what + ": " + next
}

// fairLock acquires and releases a fair lock. This may succeed even when memory is full, although waiters could not
// be queued.
func (e *examination) fairLock() Finding {
	took, err := e.pair(rfairlock.New(e.client, e.name))
	var f Finding
	switch {
	case e.isReplica():
		f = warning("See server above.", "not tested: %s", onReplica)
	case err != nil && isOOM(err):
		f = warning("See eviction below.", "cannot acquire and release a fair lock: %s", shortError(err))
	case err != nil:
		f = warning(andThen("Plain locks still work", e.seeAlso(err)), "cannot acquire and release a fair lock: %s", shortError(err))
	case e.full:
		f = warning("See eviction below.", "acquired and released a free lock, but memory is full: no waiter can enter a queue")
	default:
		return good("acquired and released in %s", took)
	}
	f.Level = e.lacking(acl.Fair)
	return f
}

func (e *examination) pair(lock *rlock.Lock) (time.Duration, error) {
	if e.isReplica() {
		return 0, nil // trying would take too long
	}
	began := time.Now()
	hold, err := lock.TryLock(e.ctx, rlock.WithLease(probeLease))
	if err != nil {
		return 0, err
	}
	if err := hold.Unlock(); err != nil {
		return 0, err
	}
	return time.Since(began).Round(10 * time.Microsecond), nil
}
