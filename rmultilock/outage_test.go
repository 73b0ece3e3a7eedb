package rmultilock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
)

// outage is a Redis that is away for longer than its client's watchdog timeout.
type outage struct {
	server *redistest.Server
	proxy  *redistest.Proxy
	client *redlatch.Client
}

func newOutage(t *testing.T) *outage {
	t.Helper()
	o := &outage{server: redistest.Start(t)}
	o.proxy = redistest.NewProxy(t, o.server.Addr())
	o.client = connect(t, o.proxy.URL(), redlatch.WithWatchdogTimeout(3*time.Second), redlatch.WithCommandTimeout(time.Second))
	return o
}

func (o *outage) begin() {
	o.proxy.Refuse(true)
	o.proxy.Reset()
}

// end holds that the locks are freed soon after it.
func (o *outage) end(t *testing.T, names []string) {
	t.Helper()
	time.Sleep(5 * time.Second)
	o.proxy.Refuse(false)
	for _, name := range names {
		require.Eventually(t, func() bool { return o.server.Do(t, "EXISTS", name) == int64(0) }, soon, 10*time.Millisecond, name)
	}
}

// Redis is away for longer than the client's watchdog timeout, but not for as long as the lease
// that was asked for: the release goes on until that is over, as that of one lock does.
func TestAReleaseGoesOnForTheLeaseThatWasAskedFor(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	all := names(t, 3)
	one, err := rlock.New(o.client, all[2]).Lock(within(t), rlock.WithLease(10*time.Minute))
	require.NoError(t, err)
	several, err := rmultilock.New(o.client, all[:2]...).Lock(within(t), rlock.WithLease(10*time.Minute))
	require.NoError(t, err)
	o.begin()
	require.Error(t, one.Unlock())
	require.Error(t, several.Unlock())
	o.end(t, all)
}

// One of the locks was entered again with a longer lease than that of all, and the release of that hold
// has not arrived: the lock may last for that lease, and so does the release of all.
func TestAReleaseGoesOnForTheLeaseOfAnInnerHold(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	all := names(t, 2)
	several := take(t, rmultilock.New(o.client, all...))
	inner, err := rlock.New(o.client, all[1]).Lock(several.Context(within(t)), rlock.WithLease(10*time.Minute))
	require.NoError(t, err)
	o.begin()
	_ = inner.Unlock() // which has not arrived
	require.Error(t, several.Unlock())
	o.end(t, all[1:])
}
