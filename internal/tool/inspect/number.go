package inspect

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

// Number is what there is to tell of a name that holds a number: a semaphore, a count-down latch,
// or a number of another program, which looks the same.
type Number struct {
	// Available is the number: the permits of a semaphore that can be taken, or what is to count
	// down.
	Available int64
	// Taken is how many permits are taken, those whose leases are over among them.
	Taken int64
	// PermitWaiters is how many connections wait for permits, LatchWaiters how many wait as for a
	// count-down latch. Both are 0 when that is unknown.
	PermitWaiters, LatchWaiters int64
	// Uncounted is why it is unknown how many wait, nil when it is known.
	Uncounted error
}

// Waiters is how many connections wait.
func (n *Number) Waiters() int64 { return n.PermitWaiters + n.LatchWaiters }

// kind is Semaphore when permits are taken or waited for, Latch when connections wait as for one,
// and else Counter, which may be either.
func (n *Number) kind() Kind {
	switch {
	case n.Taken > 0 || n.PermitWaiters > 0:
		return Semaphore
	case n.LatchWaiters > 0:
		return Latch
	}
	return Counter
}

// mostDigits is how long a number is at most, with its sign.
const mostDigits = 20

// permitsSuffix is how the keys of taken permits end.
var permitsSuffix = strings.TrimPrefix(codec.PermitsKey("{}"), "{}")

// isPart reports whether a key that holds a number is a part of a lock.
func isPart(key string) bool {
	for _, of := range []string{codec.TokenKey("{"), codec.LatchKey("{", "")} {
		if strings.HasPrefix(key, of[:strings.IndexByte(of, ':')+1]) {
			return true
		}
	}
	return strings.Contains(key, ":rwlock_timeout:")
}

// askedOfNumber is how many calls readNumbers makes for each name.
const askedOfNumber = 3

// readNumbers looks at names that may hold a number, and returns those that do. With taken only
// those of which permits are taken.
func (s *scan) readNumbers(ctx context.Context, names []string, taken bool) ([]*Lock, error) {
	var calls []call
	for _, name := range names {
		calls = append(calls, command("GETRANGE", name, 0, mostDigits), command("PTTL", name),
			command("ZCOUNT", codec.PermitsKey(name), 0, "+inf"))
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

// NumberAt returns what there is to tell of a name that holds a number, nil for another name. It
// sends GETRANGE, PTTL, ZCOUNT and PUBSUB on c. An error says that the connection is broken.
func NumberAt(ctx context.Context, c redis.Conn, name string) (*Lock, error) {
	found, err := (&scan{Request: Request{Conn: c, Labels: c}}).readNumbers(ctx, []string{name}, false)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// PermitEnds returns when the leases of permits of a semaphore end, by their ids, which are raw
// bytes, in milliseconds since 1970 by the server's clock, and what time it is by that clock, or by
// this machine's for a user who may not ask. It leaves out permits that are not taken. It sends
// TIME and a ZSCORE for each id. An error says that the connection is broken, or that the server
// refuses to tell.
func PermitEnds(c redis.Conn, name string, ids []string) (ends map[string]int64, now int64, err error) {
	calls := []call{command("TIME")}
	for _, id := range ids {
		calls = append(calls, command("ZSCORE", codec.PermitsKey(name), id))
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
			ends[ids[i]] = int64(min(end, codec.PermitForever))
		}
	}
	return ends, now, nil
}

// idLength is how long the id of a permit is.
const idLength = 16

// withIDs returns those whose first taken permit has an id of the right length: other programs
// have sorted sets beside numbers, too.
func (s *scan) withIDs(found []*Lock) (kept []*Lock, err error) {
	var calls []call
	for _, l := range found {
		calls = append(calls, command("ZRANGE", codec.PermitsKey(l.Name), 0, 0))
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

// countNumberWaiters counts those that wait, and says what kinds the numbers are. Where they
// cannot be counted none are known, and it returns why.
func countNumberWaiters(ctx context.Context, c redis.Conn, found []*Lock) (err error) {
	var channels []string
	for _, l := range found {
		channels = append(channels, codec.SemaphoreChannel(l.Name), codec.CountDownChannel(l.Name))
	}
	var counts []int64
	if len(channels) > 0 {
		counts, err = connect.Listening(ctx, c, channels...) // a broken connection has the error of the next command
	}
	for i, l := range found {
		if 2*i+1 < len(counts) {
			l.Number.PermitWaiters, l.Number.LatchWaiters = counts[2*i], counts[2*i+1]
		}
		l.Number.Uncounted, l.Kind = err, l.Number.kind()
	}
	return err
}

// ShownNumber is a name that holds a number, as commands print it.
type ShownNumber struct {
	Named
	// Kind is Semaphore, Latch or Counter.
	Kind Kind `json:"kind"`
	// Available is the number, and Taken is how many permits are taken.
	Available int64 `json:"available"`
	Taken     int64 `json:"taken"`
	// TTLMillis is how long the number lives, nil for ever.
	TTLMillis *int64 `json:"ttl_ms"`
	// PermitWaiters is how many connections wait for permits, LatchWaiters how many wait as for
	// a count-down latch.
	PermitWaiters int64 `json:"permit_waiters,omitempty"`
	LatchWaiters  int64 `json:"latch_waiters,omitempty"`
}

// Shown returns a name that holds a number as commands print it.
func (l *Lock) Shown() ShownNumber {
	n := l.Number
	return ShownNumber{NameOf(l.Name), l.Kind, n.Available, n.Taken, LeaseOf(true, l.TTL).TTLMillis, n.PermitWaiters, n.LatchWaiters}
}
