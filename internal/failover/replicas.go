package failover

import (
	"time"

	"github.com/redlatch/redlatch/transport"
)

var _ transport.Replicator = (*Failover)(nil)

// Replicate is part of transport.Replicator. Its connection leads to the master as the
// others do, and is cut as they are when the Sentinels name another one.
func (f *Failover) Replicate(call *transport.Call, replicas int, timeout time.Duration, done transport.Replicated) {
	f.once.Do(f.begin)
	f.Redigo.Replicate(call, replicas, timeout, func(reply any, have int64, err error) {
		f.heedRefusal(err)
		done(reply, have, err)
	})
}
