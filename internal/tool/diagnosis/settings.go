package diagnosis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

const (
	// fullAt is the percentage of used memory that causes a warning.
	fullAt  = 90
	apartAt = time.Second
	// slowAt is the median time of a script that causes a warning.
	slowAt      = 20 * time.Millisecond
	samples     = 100
	lookSamples = 20
	// lagAt is the accepted lag of a replica, in seconds.
	lagAt = 10
)

func (e *examination) eviction() Finding {
	policy, limit, used := e.info["maxmemory_policy"], e.number("maxmemory"), e.number("used_memory")
	switch {
	case policy == "":
		return unknown("the server does not report its policy")
	case limit == 0:
		return good("%s, and no maxmemory: nothing is evicted", policy)
	case policy != "noeviction":
		return warning("Set maxmemory-policy noeviction.", "%s with maxmemory %s may evict a held lock", policy, size(limit))
	case used >= limit:
		return bad("Free memory, or raise maxmemory.", "full: %s of %s memory used, and locks are rejected", size(used), size(limit))
	case used*100 > limit*fullAt:
		return warning("When memory is full, locks are rejected.", "%s of %s memory used", size(used), size(limit))
	}
	return good("noeviction, %s of %s memory used", size(used), size(limit))
}

func (e *examination) number(key string) int64 {
	n, err := strconv.ParseInt(e.info[key], 10, 64)
	if err != nil {
		return 0 // no limit is set
	}
	return n
}

func size(n int64) string {
	const unit = 1 << 20
	if n < 10*unit {
		return fmt.Sprintf("%d kB", n>>10)
	}
	return fmt.Sprintf("%d MB", n/unit)
}

func (e *examination) persistence() Finding {
	if e.info["rdb_last_bgsave_status"] == "err" {
		if stops, known := e.config("stop-writes-on-bgsave-error"); !known || stops == "yes" {
			return bad("Free disk space, and check the server's log.", "the last save failed, so the server may reject writes")
		}
	}
	switch e.info["aof_enabled"] {
	case "":
		return unknown("the server does not report it")
	case "0":
		return warning("Set appendonly yes if locks must survive a crash.", "no append-only file: held locks do not survive a crash")
	}
	fsync, known := e.config("appendfsync")
	if !known {
		return unknown("append-only file; its appendfsync is unknown")
	}
	return good("append-only file, appendfsync %s", fsync)
}

func (e *examination) replicas() Finding {
	n := e.number("connected_slaves")
	switch {
	case e.info["connected_slaves"] == "":
		return unknown("the server does not report it")
	case e.isReplica():
		return e.replication()
	case n == 0:
		return good("none, so no failover is possible")
	}
	for i := range n {
		if state := e.info[fmt.Sprintf("slave%d", i)]; !strings.Contains(state, "state=online") || lag(state) > lagAt {
			return warning("A failover to it loses the writes that it lacks.", "one of %d is behind: %s", n, state)
		}
	}
	least, known := e.config("min-replicas-to-write")
	switch {
	case !known:
		return unknown("%d, in sync; min-replicas-to-write is unknown", n)
	case least == "0":
		return warning("Set min-replicas-to-write 1 so that an isolated master stops granting locks.",
			"%d, in sync; but an isolated master keeps granting locks", n)
	}
	return good("%d, in sync, min-replicas-to-write %s", n, least)
}

func (e *examination) replication() Finding {
	of := e.info["master_host"] + ":" + e.info["master_port"]
	if link := e.info["master_link_status"]; link != "up" {
		return warning("Check the logs of both servers.", "this is a replica of %s, and its link to it is %s", of, link)
	}
	return good("this is a replica of %s, connected to it", of)
}

func lag(state string) int64 {
	for part := range strings.SplitSeq(state, ",") {
		if text, ok := strings.CutPrefix(part, "lag="); ok {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return 0
			}
			return n
		}
	}
	return 0
}

func (e *examination) keepalive() Finding {
	text, known := e.config("tcp-keepalive")
	if !known {
		return unknown("unknown: CONFIG GET does not work")
	}
	seconds, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return unknown("the server reports %q", text)
	case seconds == 0:
		return warning("Set tcp-keepalive 60.", "off: waiters on a lost host look alive forever")
	case seconds > 300:
		return warning("Set tcp-keepalive 60.", "waiters on a lost host look alive for %d s", seconds)
	}
	return good("a lost host is detected after %d s", seconds)
}

func (e *examination) clock() Finding {
	ahead, err := e.ahead()
	switch {
	case err != nil:
		return unknown("the server's time is unknown: %s", shortError(err))
	case ahead.Abs() > apartAt:
		return warning("Synchronize the clocks, or waiters of fair locks lose their places; see WithServerTime.",
			"the server's clock is %s", offset(ahead))
	}
	return good("the server's clock is %s", offset(ahead))
}

// ahead returns how far the server's clock is ahead of the local clock. In a cluster, it does not
// use the client, which could query any master.
func (e *examination) ahead() (time.Duration, error) {
	if e.masters == 0 {
		return engine.EngineOf(e.client).Clock.Offset(e.ctx)
	}
	asked := time.Now()
	parts, err := redis.Int64s(e.c.Do("TIME"))
	switch {
	case err != nil:
		return 0, err
	case len(parts) != 2:
		return 0, fmt.Errorf("%w to TIME: %d parts", transport.ErrBadReply, len(parts))
	}
	ours := asked.Add(time.Since(asked) / 2)
	return time.Unix(parts[0], parts[1]*int64(time.Microsecond)).Sub(ours), nil
}

func offset(ahead time.Duration) string {
	switch ahead = ahead.Round(100 * time.Microsecond); {
	case ahead == 0:
		return "in sync with this machine's"
	case ahead < 0:
		return (-ahead).String() + " behind"
	}
	return ahead.String() + " ahead"
}

func (e *examination) latency() Finding {
	script := redis.NewScript(1, probeScript)
	what, n, do := "a script", samples, func() (any, error) { return script.Do(e.c, e.name) }
	if e.looks {
		what, n, do = "PING", lookSamples, func() (any, error) { return e.c.Do("PING") }
	}
	took := make([]time.Duration, n)
	for i := range took {
		began := time.Now()
		if _, err := do(); err != nil {
			return unknown("not measured: %s", shortError(err))
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	p50, p99 := took[n/2].Round(10*time.Microsecond), took[n*99/100].Round(10*time.Microsecond)
	if p50 > slowAt {
		return warning("Each lock and each unlock takes this long: move the client closer to Redis.", "%s takes p50 %s, p99 %s", what, p50, p99)
	}
	return good("%s takes p50 %s, p99 %s", what, p50, p99)
}
