package diagnosis

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

func (e *examination) server() Finding {
	kind, version := "Redis", e.info["redis_version"]
	if v := e.info["valkey_version"]; v != "" {
		kind, version = "Valkey", v
	}
	what := kind + " " + version
	if version == "" {
		what = "a server that does not report its version"
	}
	switch {
	case e.info["redis_mode"] == "sentinel":
		return bad("Use the master that it monitors.", "%s, a sentinel, which does not store locks", what)
	case e.isCluster() && e.masters == 0:
		return bad("Use redis-cluster:// with the same host and port.", "%s, part of a cluster", what)
	case !e.isCluster() && e.masters > 0:
		return bad("Use redis:// instead of redis-cluster://.", "%s, not part of a cluster", what)
	case e.isReplica():
		return bad("Use the master, "+net.JoinHostPort(e.info["master_host"], e.info["master_port"])+".",
			"%s, a replica, which cannot take locks", what)
	case kind == "Redis" && isTooOld(version):
		return bad("Redlatch needs Redis 6.2 or later, or Valkey.", "%s is too old", what)
	}
	if e.masters > 0 {
		return good("%s, one of %d masters of a cluster", what, e.masters)
	}
	return good("%s, a standalone master", what)
}

// isTooOld reports whether a version of Redis is older than 6.2.
func isTooOld(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	minor, minorErr := strconv.Atoi(before(rest, "."))
	return err == nil && n < 6 || n == 6 && minorErr == nil && minor < 2
}

func (e *examination) isCluster() bool {
	return e.info["redis_mode"] == "cluster" || e.info["cluster_enabled"] == "1"
}

func before(text, separator string) string {
	head, _, _ := strings.Cut(text, separator)
	return head
}

func (e *examination) messages() Finding {
	const advice = "Without it, waiters find a free lock only by polling."
	c, err := e.on.Dial(e.ctx)
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
		return warning(advice, "messages are not delivered: %s", shortError(err))
	}
	return good("message round trip %s", time.Since(began).Round(10*time.Microsecond))
}

// sharded sends the same query as Redisson's AUTO mode, which treats any error as unsupported.
func (e *examination) sharded() Finding {
	_, err := redis.Values(e.c.Do("PUBSUB", "SHARDNUMSUB", "0"))
	cluster := e.isCluster() || e.info == nil && e.masters > 0
	has := "sharded pub/sub works"
	switch {
	case denied(err) != deniedNothing:
		has = "sharded pub/sub support is unknown: this user may not query it"
	case err != nil:
		has = "no sharded pub/sub"
	}
	switch {
	case e.info == nil && e.masters == 0 && denied(err) != deniedNothing:
		return unknown("cannot tell whether this is a cluster (+info) and whether sharded pub/sub works (+pubsub|shardnumsub)")
	case !cluster && denied(err) != deniedNothing: // irrelevant outside a cluster
		return good("Redisson uses PUBLISH outside a cluster")
	case !cluster:
		return good("%s; Redisson uses PUBLISH outside a cluster", has)
	case denied(err) != deniedNothing:
		f := warning("A user with this right may choose SPUBLISH, and the two kinds do not wake each other: grant it to all users or to none.",
			"%s; so Redisson's AUTO uses PUBLISH as this user", has)
		f.Command = e.grant([]string{"+pubsub|shardnumsub"})
		return f
	case err == nil:
		return good("%s; Redisson's AUTO uses SPUBLISH, from 3.22 on", has)
	}
	return good("%s; Redisson's AUTO uses PUBLISH", has)
}

func (e *examination) counting() Finding {
	switch {
	case e.isReplica():
		return warning("See server above.", "not tested: a replica does not know the subscribers")
	case e.isCluster() && e.masters == 0:
		return warning("See server above.", "not tested: one node does not know a cluster's subscribers")
	}
	_, err := inspect.Listeners(e.ctx, e.client, e.name, "redlatch-doctor:1")
	switch {
	case errors.Is(err, admin.ErrNotCounted):
		why := strings.ReplaceAll(err.Error(), "\n", "; ")
		if _, after, ok := strings.Cut(why, admin.ErrNotCounted.Error()+": "); ok {
			why = after
		}
		why = strings.NewReplacer("redlatch: ", "", "redis: ", "").Replace(why)
		return warning("Dead waiters of fair locks block them until their deadlines.", "cannot count subscribers: %s", why)
	case err != nil:
		return warning("Dead waiters of fair locks block them until their deadlines.", "cannot count subscribers: %s", shortError(err))
	}
	return good("can count subscribers: dead waiters are detected")
}

func (e *examination) slots() Finding {
	info, err := redis.String(e.c.Do("CLUSTER", "INFO"))
	if err != nil {
		return unknown("the state of the cluster is unknown: %s", shortError(err))
	}
	nodes, err := redis.String(e.c.Do("CLUSTER", "NODES"))
	if err != nil {
		return unknown("moving slots are unknown: %s", shortError(err))
	}
	if state := fields(info); state["cluster_state"] == "fail" {
		return bad("A failover takes cluster-node-timeout and a few seconds. redis-cli --cluster check shows slots without a master.",
			"the cluster is down: of %s assigned slots, %s have a failed master", state["cluster_slots_assigned"], state["cluster_slots_fail"])
	}
	if moves := movesIn(nodes); len(moves) > 0 {
		return warning("Its locks may fail with TRYAGAIN until the move ends; redis-cli --cluster fix completes an interrupted move.",
			"%s", strings.Join(moves, ", "))
	}
	return good("all slots are served and none is moving")
}

const shownMoves = 5

// movesIn parses CLUSTER NODES, which lists moving slots as [slot->-node] and [slot-<-node].
func movesIn(reply string) (moves []string) {
	places, own := map[string]string{}, ""
	for line := range strings.Lines(reply) {
		words := strings.Fields(line)
		if len(words) < 8 {
			continue
		}
		places[words[0]] = before(words[1], "@")
		if strings.Contains(words[2], "myself") {
			own = line
		}
	}
	for _, word := range strings.Fields(own) {
		text := strings.Trim(word, "[]")
		if text == word {
			continue
		}
		if slot, node, is := strings.Cut(text, "->-"); is {
			moves = append(moves, fmt.Sprintf("slot %s is moving to %s", slot, places[node]))
		} else if slot, node, is := strings.Cut(text, "-<-"); is {
			moves = append(moves, fmt.Sprintf("slot %s is moving here from %s", slot, places[node]))
		}
	}
	if more := len(moves) - shownMoves; more > 0 {
		moves = append(moves[:shownMoves], fmt.Sprintf("and %d more", more))
	}
	return moves
}
