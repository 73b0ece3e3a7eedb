package diagnosis

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/rfairlock"
)

// leastMajor is the oldest Redis that will do.
const leastMajor = 6

// server tells what it is.
func (e *examination) server() Finding {
	if e.info == nil {
		return unknown("%s", e.noInfo)
	}
	kind, version := "Redis", e.info["redis_version"]
	if v := e.info["valkey_version"]; v != "" {
		kind, version = "Valkey", v
	}
	what := kind + " " + version
	if version == "" {
		what = "a server that does not report its version"
	}
	major, err := strconv.Atoi(before(version, "."))
	switch {
	case e.info["redis_mode"] == "sentinel":
		return bad("Name the master that it watches.", "%s, a sentinel, which has no locks", what)
	case e.isCluster() && e.masters == 0:
		return bad("Name the cluster: redis-cluster:// and the same host and port.", "%s, part of a cluster", what)
	case !e.isCluster() && e.masters > 0:
		return bad("Name it with redis:// in place of redis-cluster://.", "%s, which is part of no cluster", what)
	case e.isReplica():
		return bad("Name the master, "+net.JoinHostPort(e.info["master_host"], e.info["master_port"])+".",
			"%s, a replica, where no lock can be taken", what)
	case err == nil && kind == "Redis" && major < leastMajor:
		return bad("Redlatch needs Redis 6.0 or later, or Valkey.", "%s is too old", what)
	}
	if e.masters > 0 {
		return good("%s, one of %d masters of a cluster", what, e.masters)
	}
	return good("%s, a master of its own", what)
}

func (e *examination) isCluster() bool {
	return e.info["redis_mode"] == "cluster" || e.info["cluster_enabled"] == "1"
}

func before(text, separator string) string {
	head, _, _ := strings.Cut(text, separator)
	return head
}

// messages sends a message round.
func (e *examination) messages() Finding {
	const advice = "Without it waiters find a free lock only by polling."
	c, err := e.srv.Dial(e.ctx)
	if err != nil {
		return warning(advice, "no second connection: %s", shortError(err))
	}
	defer func() { _ = c.Close() }() // it only listened
	channel := codec.LockChannel(e.name)
	if _, err := c.Do("SUBSCRIBE", channel); err != nil {
		return warning(advice, "SUBSCRIBE fails: %s", shortError(err))
	}
	began := time.Now()
	if _, err := e.c.Do("PUBLISH", channel, "0"); err != nil {
		return warning(advice, "PUBLISH fails: %s", shortError(err))
	}
	if _, err := c.Receive(); err != nil {
		return warning(advice, "a message does not arrive: %s", shortError(err))
	}
	return good("a message goes round in %s", time.Since(began).Round(10*time.Microsecond))
}

// sharded tells what Redisson will do here. Its AUTO asks just this, and takes every
// error for a no.
func (e *examination) sharded() Finding {
	_, err := redis.Values(e.c.Do("PUBSUB", "SHARDNUMSUB", "0"))
	has := "sharded pub/sub works"
	switch {
	case denied(err) != deniedNothing:
		has = "whether there is sharded pub/sub is not known: this user may not ask"
	case err != nil:
		has = "no sharded pub/sub"
	}
	switch {
	case e.info == nil && e.masters == 0 && denied(err) != deniedNothing:
		return unknown("%s, nor is whether this is part of a cluster (+info), where Redisson may use it", has)
	case !e.isCluster() && denied(err) != deniedNothing: // it does not matter
		return good("Redisson uses PUBLISH, as everywhere but in a cluster")
	case !e.isCluster():
		return good("%s; Redisson uses PUBLISH, as everywhere but in a cluster", has)
	case denied(err) != deniedNothing:
		f := warning("Who may ask may choose SPUBLISH, and they do not wake each other: let all users ask, or none.",
			"%s; so Redisson's AUTO uses PUBLISH as this user", has)
		f.Command = e.grant([]string{"+pubsub|shardnumsub"})
		return f
	case err == nil:
		return good("%s; Redisson's AUTO uses SPUBLISH, from 3.22 on", has)
	}
	return good("%s; Redisson's AUTO uses PUBLISH", has)
}

// counting checks that listeners can be counted, which is how dead waiters are detected.
func (e *examination) counting() Finding {
	if e.isReplica() {
		return warning("See server above.", "not tried: on a replica it is not known who listens")
	}
	_, err := admin.Listeners(e.ctx, rfairlock.New(e.client, e.name), "redlatch-doctor:1")
	switch {
	case errors.Is(err, admin.ErrNotCounted):
		why := strings.ReplaceAll(err.Error(), "\n", "; ")
		if _, after, ok := strings.Cut(why, admin.ErrNotCounted.Error()+": "); ok {
			why = after
		}
		why = strings.NewReplacer("redlatch: ", "", "redis: ", "").Replace(why)
		return warning("Dead waiters of fair locks block them until their deadlines.", "listeners cannot be counted: %s", why)
	case err != nil:
		return warning("Dead waiters of fair locks block them until their deadlines.", "listeners cannot be counted: %s", shortError(err))
	}
	return good("listeners can be counted: dead waiters are detected")
}
