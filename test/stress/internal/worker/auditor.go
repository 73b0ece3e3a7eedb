package worker

import (
	"errors"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/test/stress/internal/history"
)

// auditor is where a process asks and writes past all faults.
type auditor struct {
	log           *history.Writer
	direct, marks *redis.Pool
}

func openAuditor(c *Config, log *history.Writer) *auditor {
	pool := func(url string) *redis.Pool {
		return &redis.Pool{MaxIdle: c.Callers, Dial: func() (redis.Conn, error) {
			return redis.DialURL(url, redis.DialClientName("audit"), redis.DialConnectTimeout(2*time.Second),
				redis.DialReadTimeout(2*time.Second), redis.DialWriteTimeout(2*time.Second))
		}}
	}
	return &auditor{log: log, direct: pool(c.Direct), marks: pool(c.MarkServer)}
}

func (a *auditor) close() {
	_, _ = a.direct.Close(), a.marks.Close() // nothing is left to be lost
}

func do(pool *redis.Pool, cmd string, args ...any) (any, error) {
	c := pool.Get()
	defer func() { _ = c.Close() }() // back to the pool
	return c.Do(cmd, args...)
}

// mark leaves an entry on the audit server, and a record if the hold outlived it.
func (a *auditor) mark(key string, h *sampledHold) {
	if h.hold.Err() != nil {
		return
	}
	entry, err := redis.String(do(a.marks, "XADD", key, "MAXLEN", "~", 1000, "*", h.id, h.field))
	if err == nil && h.hold.Err() == nil {
		a.log.Write(history.Record{Kind: history.Mark, Hold: h.id, Entry: entry})
	}
}

// look reads how often an owner holds a lock and for how long the key lives.
const look = `return {redis.call('HGET', KEYS[1], ARGV[1]) or '0', redis.call('PTTL', KEYS[1])}`

// audit asks the server what it has of a hold that lives. Inside, asked after the
// reply, is how often its owner is, 0 if that is not sure, and whether the server's
// count must be exactly that.
func (a *auditor) audit(key string, h *sampledHold, inside func() (depth int64, exact bool)) {
	at := history.Now()
	if h.hold.Err() != nil {
		return
	}
	until := at + h.hold.Remaining()
	count, ttl, err := a.ask(key, h.field)
	if err != nil {
		return // the server is away: so much for the audit
	}
	r := history.Record{T: history.Now(), Kind: history.Audit, Key: key, Hold: h.id, Until: until, TTL: ttl, Count: count}
	r.Depth, r.Exact = inside()
	a.log.Write(r)
}

// absent asks the server whether an owner that has left is gone.
func (a *auditor) absent(key string, h *sampledHold) {
	count, _, err := a.ask(key, h.field)
	if err == nil {
		a.log.Write(history.Record{Kind: history.Absent, Key: key, Hold: h.id, Count: count})
	}
}

func (a *auditor) ask(key, owner string) (count int64, ttl time.Duration, err error) {
	return counts(do(a.direct, "EVAL", look, 1, key, owner))
}

// counts reads a count and for how many milliseconds it holds.
func counts(answer any, err error) (count int64, ttl time.Duration, _ error) {
	reply, err := redis.Int64s(answer, err)
	if err != nil {
		return 0, 0, err
	}
	if len(reply) != 2 {
		return 0, 0, errors.New("not two numbers")
	}
	return reply[0], time.Duration(reply[1]) * time.Millisecond, nil
}

// handOver leaves an owner that was handed over for another caller.
func (a *auditor) handOver(key, owner string) {
	_, _ = do(a.marks, "RPUSH", "handed:"+key, owner) // the lease ends it otherwise
}

// taken returns the owner that was handed over last, or "".
func (a *auditor) taken(key string) string {
	owner, err := redis.String(do(a.marks, "RPOP", "handed:"+key))
	if err != nil {
		return ""
	}
	return owner
}
