package worker

import (
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/test/stress/internal/history"
)

// lookAtPermits reads how many of some permits a semaphore has, and how long the first of them to
// end has left.
const lookAtPermits = `local left, n, now = -1, 0, redis.call('TIME')
for i = 1, #ARGV do
  local ends = redis.call('ZSCORE', KEYS[1], (string.gsub(ARGV[i], '..', function(c) return string.char(tonumber(c, 16)) end)))
  if ends then
    local ms = ends - now[1] * 1000 - math.floor(now[2] / 1000)
    if n == 0 or ms < left then left = ms end
    n = n + 1
  end
end
return {n, left}`

// lookAtSemaphore reads how many permits a semaphore has available, and how many are taken.
const lookAtSemaphore = `return {tonumber(redis.call('GET', KEYS[1]) or '0'), redis.call('ZCARD', KEYS[2])}`

// permits asks the server what it has of the permits of a hold that lives.
func (a *auditor) permits(key Key, h *sampledHold) {
	at := history.Now()
	if h.hold.Err() != nil {
		return
	}
	until := at + h.hold.Remaining()
	count, ttl, err := a.askOf(key.Name, h)
	if err != nil {
		return // the server is away: so much for the audit
	}
	r := history.Record{T: history.Now(), Kind: history.Audit, Key: key.Name, Hold: h.id, Until: until, TTL: ttl, Count: count}
	if h.hold.Err() == nil {
		r.Depth, r.Exact = int64(h.permits.N()), true
	}
	a.log.Write(r)
}

// returned asks the server whether permits that were released are back.
func (a *auditor) returned(name string, h *sampledHold) {
	if count, _, err := a.askOf(name, h); err == nil {
		a.log.Write(history.Record{Kind: history.Absent, Key: name, Hold: h.id, Count: count})
	}
}

// askOf asks how many of a hold's permits the server has, and how long they live.
func (a *auditor) askOf(name string, h *sampledHold) (count int64, ttl time.Duration, err error) {
	args := []any{lookAtPermits, 1, codec.PermitsKey(name)}
	for _, id := range h.permits.IDs() {
		args = append(args, id)
	}
	return counts(do(a.direct, "EVAL", args...))
}

// stock asks the server how many permits a semaphore has.
func (a *auditor) stock(key Key) {
	at := history.Now()
	reply, err := redis.Int64s(do(a.direct, "EVAL", lookAtSemaphore, 2, key.Name, codec.PermitsKey(key.Name)))
	if err != nil {
		return
	}
	a.log.Write(history.Record{
		T: at, Until: history.Now(), Kind: history.Stock, Key: key.Name,
		Available: reply[0], Count: reply[1], Most: int64(key.Permits), Exact: key.Exact,
	})
}
