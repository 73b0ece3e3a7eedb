package worker

import (
	"errors"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/test/stress/internal/history"
)

// desk is where a process asks and writes past all faults.
type desk struct {
	log            *history.Writer
	direct, ledger *redis.Pool
}

func openDesk(c *Config, log *history.Writer) *desk {
	pool := func(url string) *redis.Pool {
		return &redis.Pool{MaxIdle: c.Callers, Dial: func() (redis.Conn, error) {
			return redis.DialURL(url, redis.DialClientName("audit"), redis.DialConnectTimeout(2*time.Second),
				redis.DialReadTimeout(2*time.Second), redis.DialWriteTimeout(2*time.Second))
		}}
	}
	return &desk{log: log, direct: pool(c.Direct), ledger: pool(c.Ledger)}
}

func (d *desk) close() {
	_, _ = d.direct.Close(), d.ledger.Close() // nothing is left to be lost
}

func do(pool *redis.Pool, cmd string, args ...any) (any, error) {
	c := pool.Get()
	defer func() { _ = c.Close() }() // back to the pool
	return c.Do(cmd, args...)
}

// mark leaves an entry on the ledger, and a record if the hold outlived it.
func (d *desk) mark(key string, h *held) {
	if h.hold.Err() != nil {
		return
	}
	entry, err := redis.String(do(d.ledger, "XADD", key, "MAXLEN", "~", 1000, "*", h.id, h.hold.Owner().String()))
	if err == nil && h.hold.Err() == nil {
		d.log.Write(history.Record{Kind: history.Mark, Hold: h.id, Entry: entry})
	}
}

// look reads how often an owner holds a lock and for how long the key lives.
const look = `return {redis.call('HGET', KEYS[1], ARGV[1]) or '0', redis.call('PTTL', KEYS[1])}`

// audit asks the server what it has of a hold that lives. Inside, asked after the
// reply, is how often its owner is, 0 if that is not sure, and whether the server's
// count must be exactly that.
func (d *desk) audit(key string, h *held, inside func() (depth int64, exact bool)) {
	at := history.Now()
	if h.hold.Err() != nil {
		return
	}
	until := at + h.hold.Remaining()
	count, ttl, err := d.ask(key, h.hold.Owner().String())
	if err != nil {
		return // the server is away: so much for the audit
	}
	r := history.Record{T: history.Now(), Kind: history.Audit, Key: key, Hold: h.id, Until: until, TTL: ttl, Count: count}
	r.Depth, r.Exact = inside()
	d.log.Write(r)
}

// absent asks the server whether an owner that has left is gone.
func (d *desk) absent(key string, h *held) {
	count, _, err := d.ask(key, h.hold.Owner().String())
	if err == nil {
		d.log.Write(history.Record{Kind: history.Absent, Key: key, Hold: h.id, Count: count})
	}
}

func (d *desk) ask(key, owner string) (count int64, ttl time.Duration, err error) {
	reply, err := redis.Int64s(do(d.direct, "EVAL", look, 1, key, owner))
	if err != nil {
		return 0, 0, err
	}
	if len(reply) != 2 {
		return 0, 0, errors.New("not two numbers")
	}
	return reply[0], time.Duration(reply[1]) * time.Millisecond, nil
}

// offer leaves an owner that was handed over for whoever comes.
func (d *desk) offer(key, owner string) {
	_, _ = do(d.ledger, "RPUSH", "handed:"+key, owner) // the lease ends it otherwise
}

// taken returns the owner that was handed over last, or "".
func (d *desk) taken(key string) string {
	owner, err := redis.String(do(d.ledger, "RPOP", "handed:"+key))
	if err != nil {
		return ""
	}
	return owner
}
