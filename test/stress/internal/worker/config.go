//go:build linux

// Package worker implements a client process of the nemesis run, which injects faults while clients use locks. It
// acquires locks at random in every supported way and records its calls for package history. It reads one command per
// line, writes one reply per line, and exits when its input ends. After the command drain, no caller is holding a lock
// or waiting for one, but the client may still be resolving calls whose results are uncertain.
package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/test/stress/internal/history"
	"github.com/redlatch/redlatch/transport"
)

// Config configures a process.
type Config struct {
	Process string `json:"process"`
	// URL is the address at which clients reach the locks. Direct is the same server without the injected faults.
	// MarkServer is a server without faults.
	URL        string `json:"url"`
	Direct     string `json:"direct"`
	MarkServer string `json:"mark_server"`
	History    string `json:"history"`
	Seed       uint64 `json:"seed"`
	Callers    int    `json:"callers"`
	Keys       []Key  `json:"keys"`
	Habits     Habits `json:"habits"`
}

// Key is a lock or a semaphore.
type Key struct {
	// Permits is the size of a semaphore, or 0 for a lock. If Counter is set, the permits do not have IDs.
	Name      string        `json:"name"`
	Fair      bool          `json:"fair"`
	Fenced    bool          `json:"fenced"`
	ReadWrite bool          `json:"read_write"`
	Permits   int           `json:"permits"`
	Counter   bool          `json:"counter"`
	Exact     bool          `json:"exact"`
	Lease     time.Duration `json:"lease"`
}

// Habits are the fractions of sessions, from 0 to 1, that do something other than Lock, work and Unlock.
type Habits struct {
	Try      float64 `json:"try"`
	Cancel   float64 `json:"cancel"`   // shortly after the call
	Together float64 `json:"together"` // while the lock is being unlocked
	Fixed    float64 `json:"fixed"`
	MaxHold  float64 `json:"maxhold"`
	Reenter  float64 `json:"reenter"`
	Expire   float64 `json:"expire"`
	HandOver float64 `json:"handover"`
	Linger   float64 `json:"linger"`
	Replace  bool    `json:"replace"`

	Rest time.Duration `json:"rest"`
}

// Usual returns the habits for a run that covers everything.
func Usual() Habits {
	return Habits{
		Try: 0.2, Cancel: 0.2, Together: 0.05, Fixed: 0.1, MaxHold: 0.1, Reenter: 0.25,
		Expire: 0.03, HandOver: 0.1, Linger: 0.08, Replace: true,
	}
}

// Bounds of the clients.
const (
	CommandTimeout = time.Second
	// PollCap is long, so that a lost notification is noticed.
	PollCap = 30 * time.Second
	// Grace is the shortest grace period.
	Grace    = 5 * time.Second
	patience = 20 * time.Second
	// overhead is how long a call may take in addition to its wait. It allows for one attempt and for another one after
	// the script has been loaded, each on a new connection.
	overhead = 4 * CommandTimeout
)

func (c *Config) client() (*redlatch.Client, error) {
	return redlatch.New(func(ctx context.Context) (redis.Conn, error) {
		return redis.DialURLContext(ctx, c.URL, redis.DialConnectTimeout(CommandTimeout),
			redis.DialReadTimeout(CommandTimeout), redis.DialWriteTimeout(CommandTimeout))
	},
		redlatch.WithCommandTimeout(CommandTimeout), redlatch.WithPollCap(PollCap),
		redlatch.WithDeadWaiterGrace(Grace), redlatch.WithWatchdogTimeout(c.shortest()))
}

// At returns the semaphore's name in a round. A counter has a new name in each round, because the permits of killed
// processes are lost.
func (k Key) At(round int) string {
	if k.Counter {
		return fmt.Sprintf("%s.%d", k.Name, round)
	}
	return k.Name
}

func (c *Config) shortest() time.Duration {
	least := c.Keys[0].Lease
	for _, k := range c.Keys {
		least = min(least, k.Lease)
	}
	return least
}

// Lock returns the lock. For a read/write lock, reads selects the role.
func (k Key) Lock(client *redlatch.Client, reads bool) *rlock.Lock {
	var l *rfencedlock.Lock
	switch {
	case k.ReadWrite && reads:
		return rreadwritelock.New(client, k.Name).Read()
	case k.ReadWrite:
		return rreadwritelock.New(client, k.Name).Write()
	case k.Fair && k.Fenced:
		l = rfencedlock.NewFair(client, k.Name)
	case k.Fenced:
		l = rfencedlock.New(client, k.Name)
	case k.Fair:
		return rfairlock.New(client, k.Name)
	default:
		return rlock.New(client, k.Name)
	}
	plain := &rlock.Lock{} // its holds have the tokens of l
	*hold.Of(plain) = *hold.Of(l)
	return plain
}

// Class returns the name of an error, or "".
func Class(err error) string {
	if err == nil {
		return ""
	}
	for _, c := range []struct {
		err  error
		name string
	}{
		{redlatch.ErrLost, "lost"},
		{redlatch.ErrMaxHold, "max-hold"},
		{redlatch.ErrHandedOver, "handed-over"},
		{redlatch.ErrClosed, "closed"},
		{redlatch.ErrUncertain, "uncertain"},
		{redlatch.ErrNotAcquired, "not-acquired"},
		{redlatch.ErrNotSent, "not-sent"},
		{redlatch.ErrReentered, "entered"},
		{redlatch.ErrNotHeld, "not-held"},
	} {
		if errors.Is(err, c.err) {
			return c.name
		}
	}
	if refused := (*transport.ServerError)(nil); errors.As(err, &refused) {
		return "server: " + refused.Code()
	}
	return "other: " + err.Error()
}

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
	_, _ = a.direct.Close(), a.marks.Close()
}

func do(pool *redis.Pool, cmd string, args ...any) (any, error) {
	c := pool.Get()
	defer func() { _ = c.Close() }()
	return c.Do(cmd, args...)
}

// mark adds an entry to the key's stream on the server without faults. It records the entry only if the hold is still
// valid afterwards.
func (a *auditor) mark(key string, h *sampledHold) {
	if h.hold.Err() != nil {
		return
	}
	entry, err := redis.String(do(a.marks, "XADD", key, "MAXLEN", "~", 1000, "*", h.id, h.field))
	if err == nil && h.hold.Err() == nil {
		a.log.Write(history.Record{Kind: history.Mark, Hold: h.id, Entry: entry})
	}
}

const look = `return {redis.call('HGET', KEYS[1], ARGV[1]) or '0', redis.call('PTTL', KEYS[1])}`

// audit records the owner's count and the TTL on the server. It calls inside after the server has replied. The function
// returns the owner's depth, or 0 if it is unknown, and whether the server's count must be equal to it.
func (a *auditor) audit(key string, h *sampledHold, inside func() (depth int64, exact bool)) {
	at := history.Now()
	if h.hold.Err() != nil {
		return
	}
	until := at + h.hold.Remaining()
	count, ttl, err := a.ask(key, h.field)
	if err != nil {
		return
	}
	r := history.Record{T: history.Now(), Kind: history.Audit, Key: key, Hold: h.id, Until: until, TTL: ttl, Count: count}
	r.Depth, r.Exact = inside()
	a.log.Write(r)
}

func (a *auditor) absent(key string, h *sampledHold) {
	count, _, err := a.ask(key, h.field)
	if err == nil {
		a.log.Write(history.Record{Kind: history.Absent, Key: key, Hold: h.id, Count: count})
	}
}

func (a *auditor) ask(key, owner string) (count int64, ttl time.Duration, err error) {
	return counts(do(a.direct, "EVAL", look, 1, key, owner))
}

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

func (a *auditor) handOver(key, owner string) {
	_, _ = do(a.marks, "RPUSH", "handed:"+key, owner)
}

func (a *auditor) taken(key string) string {
	owner, err := redis.String(do(a.marks, "RPOP", "handed:"+key))
	if err != nil {
		return ""
	}
	return owner
}
