package inspect

import (
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/limits"
)

const (
	// countedHolds is how many holds of one reader are looked at, and allHolds how many
	// of all readers of a lock.
	countedHolds = 64
	allHolds     = 1024
)

// ReadersLeft returns what readers have left of their leases, by owner: a read/write lock
// has one lease for all of them, and for each hold a key that lasts as long as the hold's
// own lease. It is 0 for a reader whose holds are all over, which does not block the lock
// any more when the other readers have left, and redlatch.NoTTL for one without a lease. Left
// out are writers, readers that have very many holds or come after 1,024 others, and
// readers whose keys the user may not read. It sends one PTTL for each hold, all at once.
// An error means that the connection is broken.
func ReadersLeft(c redis.Conn, name string, holders []Holder) (map[string]time.Duration, error) {
	var calls []call
	var owners []string
	for _, h := range holders {
		n, err := strconv.ParseInt(string(h.Count), 10, 64)
		if _, writes := codec.WriterOf(h.Owner); writes || err != nil || n > countedHolds || len(calls) > allHolds {
			continue
		}
		for i := range n {
			calls = append(calls, command("PTTL", codec.HoldKey(name, h.Owner, i+1)))
			owners = append(owners, h.Owner)
		}
	}
	replies, err := ask(c, calls)
	if err != nil {
		return nil, err
	}
	left := map[string]time.Duration{}
	for i, reply := range replies {
		ms, isNumber := reply.(int64)
		if !isNumber {
			continue
		}
		left[owners[i]] = longer(left[owners[i]], ms)
	}
	return left, nil
}

// longer returns the longer of what was left so far and what a reply to PTTL says.
func longer(left time.Duration, ms int64) time.Duration {
	switch {
	case left == redlatch.NoTTL || ms == -1:
		return redlatch.NoTTL
	case ms < 0: // it is over
		return left
	}
	return max(left, limits.FromMillis(ms))
}
