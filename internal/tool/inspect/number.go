package inspect

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

// Number is a semaphore, a count-down latch, or another program's number.
type Number struct {
	// Available is the value: the free permits, or the latch's count.
	Available int64
	// Taken counts taken permits, including expired ones.
	Taken int64
	// PermitWaiters and LatchWaiters count waiting connections. They are 0 if unknown.
	PermitWaiters, LatchWaiters int64
	// Uncounted is the reason why the waiters are unknown.
	Uncounted error
}

// Waiters returns the number of waiting connections.
func (n *Number) Waiters() int64 { return n.PermitWaiters + n.LatchWaiters }

func (n *Number) kind() Kind {
	switch {
	case n.Taken > 0 || n.PermitWaiters > 0:
		return Semaphore
	case n.LatchWaiters > 0:
		return Latch
	}
	return Counter
}

const mostDigits = 20

var permitsSuffix = strings.TrimPrefix(protocol.PermitsKey("{}"), "{}")

func isPart(key string) bool {
	for _, of := range []string{protocol.TokenKey("{"), protocol.LatchKey("{", "")} {
		if strings.HasPrefix(key, of[:strings.IndexByte(of, ':')+1]) {
			return true
		}
	}
	return strings.Contains(key, ":rwlock_timeout:")
}

const askedOfNumber = 3 // calls per name

// readNumbers omits other names and, if taken is set, numbers without taken permits.
func (s *scan) readNumbers(ctx context.Context, names []string, taken bool) ([]*Lock, error) {
	var calls []call
	for _, name := range names {
		calls = append(calls, command("GETRANGE", name, 0, mostDigits), command("PTTL", name),
			command("ZCOUNT", protocol.PermitsKey(name), 0, "+inf"))
	}
	replies, err := ask(s.Conn, calls)
	if err != nil {
		return nil, err
	}
	var found []*Lock
	at := time.Now()
	for i, name := range names {
		mine := replies[askedOfNumber*i : askedOfNumber*(i+1)]
		if refused, is := refusal(mine[0]); is {
			s.refused(refused)
			continue
		}
		available, err := strconv.ParseInt(text(mine[0]), 10, 64)
		if err != nil || taken && number(mine[2]) == 0 {
			continue
		}
		l := &Lock{Name: name, TTL: redlatch.NoTTL, At: at, Number: &Number{Available: available, Taken: number(mine[2])}}
		if left, isNumber := mine[1].(int64); isNumber && left >= 0 {
			l.TTL = limits.FromMillis(left)
		}
		found = append(found, l)
	}
	if taken {
		if found, err = s.withIDs(found); err != nil {
			return nil, err
		}
	}
	if err := countNumberWaiters(ctx, s.Labels, found); err != nil {
		s.unread.Uncounted = err
	}
	return found, nil
}

// NumberAt returns the number under name, or nil if there is none. An error means a broken connection.
func NumberAt(ctx context.Context, c redis.Conn, name string) (*Lock, error) {
	found, err := (&scan{Request: Request{Conn: c, Labels: c}}).readNumbers(ctx, []string{name}, false)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// PermitEnds returns when the leases of permits end, in Unix milliseconds, by raw ID. It omits permits that are not
// taken. now is the server's time, or the local time if the user may not call TIME.
func PermitEnds(c redis.Conn, name string, ids []string) (ends map[string]int64, now int64, err error) {
	calls := []call{command("TIME")}
	for _, id := range ids {
		calls = append(calls, command("ZSCORE", protocol.PermitsKey(name), id))
	}
	replies, err := ask(c, calls)
	if err != nil {
		return nil, 0, err
	}
	now = time.Now().UnixMilli()
	if clock, err := redis.Int64s(replies[0], nil); err == nil && len(clock) == 2 {
		now = clock[0]*1000 + clock[1]/1000
	}
	ends = map[string]int64{}
	for i, reply := range replies[1:] {
		if refused, is := reply.(redis.Error); is {
			return nil, 0, refused
		}
		if end, err := strconv.ParseFloat(text(reply), 64); err == nil {
			ends[ids[i]] = int64(min(end, protocol.PermitForever))
		}
	}
	return ends, now, nil
}

const idLength = 16

// withIDs drops numbers whose first permit has an invalid ID, because they belong to other
// programs.
func (s *scan) withIDs(found []*Lock) (kept []*Lock, err error) {
	var calls []call
	for _, l := range found {
		calls = append(calls, command("ZRANGE", protocol.PermitsKey(l.Name), 0, 0))
	}
	replies, err := ask(s.Conn, calls)
	if err != nil {
		return nil, err
	}
	for i, l := range found {
		ids, err := redis.Strings(replies[i], nil)
		if err == nil && len(ids) == 1 && len(ids[0]) == idLength {
			kept = append(kept, l)
		}
	}
	return kept, nil
}

// countNumberWaiters also sets the kinds.
func countNumberWaiters(ctx context.Context, c redis.Conn, found []*Lock) (err error) {
	var channels []string
	for _, l := range found {
		channels = append(channels, protocol.SemaphoreChannel(l.Name), protocol.CountDownChannel(l.Name))
	}
	var counts []int64
	if len(channels) > 0 {
		counts, err = connect.Listening(ctx, c, channels...)
	}
	for i, l := range found {
		if 2*i+1 < len(counts) {
			l.Number.PermitWaiters, l.Number.LatchWaiters = counts[2*i], counts[2*i+1]
		}
		l.Number.Uncounted, l.Kind = err, l.Number.kind()
	}
	return err
}

// ShownNumber is a number as commands print it.
type ShownNumber struct {
	Named
	Kind      Kind  `json:"kind"`
	Available int64 `json:"available"`
	Taken     int64 `json:"taken"`
	// TTLMillis is nil if the number never expires.
	TTLMillis     *int64 `json:"ttl_ms"`
	PermitWaiters int64  `json:"permit_waiters,omitempty"`
	LatchWaiters  int64  `json:"latch_waiters,omitempty"`
}

// Shown returns the number as commands print it.
func (l *Lock) Shown() ShownNumber {
	n := l.Number
	return ShownNumber{NameOf(l.Name), l.Kind, n.Available, n.Taken, LeaseOf(true, l.TTL).TTLMillis, n.PermitWaiters, n.LatchWaiters}
}
