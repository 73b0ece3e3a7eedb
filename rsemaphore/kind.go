package rsemaphore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/countqueue"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/watchdog"
	"github.com/redlatch/redlatch/transport"
)

// permits is the kind of a hold of n permits, whose owner consists of n IDs. It is not reentrant.
type permits struct {
	*semaphore
	n int64
}

type semaphore struct {
	key, channel string
	engine       *engine.Engine
	scripts      luasrc.Permits
}

var renewal = engine.Slot[*watchdog.Renewal]{Make: func(e *engine.Engine) *watchdog.Renewal {
	fill := func(call *transport.Call, n int, lease func(i int) (key, owner, ttl any)) {
		e.Clock.Refresh()
		luasrc.FillPermitRenew(call, e.Clock.NowMillis(), n, func(i int) (any, any, any) {
			key, ids, ttl := lease(i)
			name, _ := key.(string) // always a string
			return protocol.PermitsKey(name), rawIDs(ids), ttl
		})
	}
	return &watchdog.Renewal{Fill: fill, Renewed: reply.RenewedAt}
}}

var _ interface {
	hold.Kind
	hold.Identifying
} = (*permits)(nil)

func newSemaphore(e *engine.Engine, mapped string) *semaphore {
	channel := protocol.SemaphoreChannel(mapped)
	return &semaphore{
		key: mapped, channel: channel, engine: e,
		scripts: luasrc.Permits{
			Counter: luasrc.Counter{Key: mapped, Channel: channel, Publish: e.Publish()},
			Permits: protocol.PermitsKey(mapped),
		},
	}
}

func (s *semaphore) of(n int64) (hold.Kind, acquire.Strategy) {
	k := &permits{s, n}
	return k, countqueue.New(s.engine, k, n)
}

func (*permits) Name() string   { return "permits" }
func (*permits) Family() string { return "permits" }
func (p *permits) Key() string  { return p.key }

func (p *permits) Channel(any) string          { return p.channel }
func (p *permits) NewID() string               { return newIDs(p.n) }
func (p *permits) Prepare(ctx context.Context) { p.engine.Clock.Keep(ctx) }

func (p *permits) Acquire(c *transport.Call, r *acquire.Request) {
	p.scripts.Acquire(c, p.engine.Clock.NowMillis(), rawIDs(r.Owner), r.Lease)
}

func (p *permits) Decode(answer any) (acquire.Outcome, error) {
	taken, err := reply.TakenPermits(answer)
	if err == nil && !taken.Granted && taken.Total > 0 && taken.Total < p.n {
		err = fmt.Errorf("%w: %d of %d", ErrTooMany, p.n, taken.Total)
	}
	out := acquire.Outcome{Granted: taken.Granted, TTL: taken.TTL, Available: taken.Available}
	if !taken.Exists {
		out.Hint = errNotSet
	}
	return out, err
}

func (p *permits) Release(c *transport.Call, r *acquire.Request) {
	p.scripts.Release(c, p.engine.Clock.NowMillis(), rawIDs(r.Owner), sizeOf(r.Owner))
}

func (p *permits) Released(answer any) (reply.ReleaseOutcome, error) {
	returned, _, err := reply.ReturnedPermits(answer)
	switch {
	case err != nil:
		return 0, err
	case returned < p.n:
		return reply.NotHeld, nil
	}
	return reply.Free, nil
}

func (p *permits) Renewal() *watchdog.Renewal { return renewal.Of(p.engine) }

func (p *permits) Replicate(c *transport.Call, ids any) { p.scripts.Replicate(c, rawIDs(ids)) }
func (*permits) Replicated(answer any) (bool, error)    { return reply.Holds(answer) }

const (
	idBytes = 16
	idChars = 2 * idBytes
)

// newIDs returns n IDs in hexadecimal, separated by commas.
func newIDs(n int64) string {
	raw := make([]byte, n*idBytes)
	_, _ = rand.Read(raw) // it never fails
	ids := make([]byte, 0, n*(idChars+1))
	for ; len(raw) > 0; raw = raw[idBytes:] {
		if len(ids) > 0 {
			ids = append(ids, ',')
		}
		ids = hex.AppendEncode(ids, raw[:idBytes])
	}
	return string(ids)
}

func rawIDs(ids any) string {
	text, _ := ids.(string) // always a string
	digits := 2 * int(sizeOf(ids))
	raw := make([]byte, 0, (len(text)+1)/(digits+1)*digits/2)
	for len(text) >= digits {
		raw, _ = hex.AppendDecode(raw, []byte(text[:digits])) // it is hexadecimal
		text = text[min(digits+1, len(text)):]
	}
	return string(raw)
}

// sizeOf returns the length of an ID in bytes, or 1 if it is less. The IDs of other programs may be
// longer or shorter.
func sizeOf(ids any) int64 {
	text, _ := ids.(string) // always a string
	if i := strings.IndexByte(text, ','); i >= 0 {
		text = text[:i]
	}
	return int64(max(1, len(text)/2))
}

func parseIDs(ids []string) (string, error) {
	if len(ids) == 0 || len(ids) > maxPermits {
		return "", fmt.Errorf("%w: invalid number of permit IDs %d: must be from 1 to %d", redlatch.ErrInvalid, len(ids), maxPermits)
	}
	for _, id := range ids {
		if raw, err := hex.DecodeString(id); err != nil || len(raw) != idBytes {
			return "", fmt.Errorf("%w: want a permit ID of %d hexadecimal digits, got %s", redlatch.ErrInvalid, idChars, limits.Quote(id))
		}
	}
	return rawIDs(strings.Join(ids, ",")), nil
}
