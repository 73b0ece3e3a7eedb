package rueidis_test

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// actedWithin is the bound on how long after the first +switch-master a transport goes
// on with the former master, and how soon it works with the new one.
const actedWithin = 1500 * time.Millisecond

// TestASwitchOfMastersIsActedOn lets Sentinel name another master while the old one
// goes on working, and takes writes that are lost.
func TestASwitchOfMastersIsActedOn(t *testing.T) {
	t.Parallel()
	const password = "servers-alone"
	redis := func(*testing.T) []redistest.Option { return []redistest.Option{redistest.WithPassword(password)} }
	valkey := func(t *testing.T) []redistest.Option {
		t.Helper()
		return []redistest.Option{redistest.WithPassword(password), redistest.WithBinary(redistest.ValkeyBinary(t))}
	}
	for _, c := range []struct {
		name    string
		servers func(t *testing.T) []redistest.Option
	}{
		{"redis", redis}, {"valkey", valkey},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			set := redistest.StartSentinels(t, 2*time.Second, c.servers(t)...)
			opt := sentinels(set)
			opt.Password = password
			tr := overSentinels(t, opt)
			t.Cleanup(func() { assert.NoError(t, tr.Close()) })
			switched(t, set, tr, actedWithin)
		})
	}
}

// switched has the Sentinels make another server the master, and holds that tr does not
// write to the old one afterwards, and writes to the new one within the time given.
func switched(t *testing.T, set *redistest.Sentinels, tr transport.Transport, within time.Duration) {
	t.Helper()
	sub := subscribe(t, tr, "channel")
	w := writeOn(tr)
	reported := set.WatchSwitch(t)
	// The Sentinels must have been heard once, which they are every two seconds.
	<-time.After(2500 * time.Millisecond)
	set.Failover(t)
	sw := reported()
	require.True(t, event(t, sub).Gap)
	heard := time.Since(sw.At)
	require.Eventually(t, func() bool {
		first, _ := w.on(sw.To)
		return !first.IsZero()
	}, 20*time.Second, 5*time.Millisecond)
	w.stop()
	moved, _ := w.on(sw.To)
	_, left := w.on(sw.From)
	t.Logf("after +switch-master: last write on the old master %v, first on the new %v, gap %v",
		left.Sub(sw.At).Round(time.Millisecond), moved.Sub(sw.At).Round(time.Millisecond), heard.Round(time.Millisecond))
	assert.Less(t, left.Sub(sw.At), actedWithin, "it went on writing to the old master")
	assert.Less(t, moved.Sub(sw.At), within)
	assert.Less(t, heard, within)
	set.Do(t, "PUBLISH", "channel", "there")
	for e := event(t, sub); e.Payload != "there"; {
		e = event(t, sub)
	}
}

// writing is writes without end, each of which says which server it was on.
type writing struct {
	stopped atomic.Bool
	over    chan struct{}

	mu    sync.Mutex           // guards what follows
	first map[string]time.Time // answer of each server, by port
	last  map[string]time.Time
}

var where = transport.NewScript("where", "redis.call('incr', KEYS[1]) return redis.call('info', 'server')")

func writeOn(tr transport.Transport) *writing {
	w := &writing{over: make(chan struct{}), first: map[string]time.Time{}, last: map[string]time.Time{}}
	go func() {
		defer close(w.over)
		for !w.stopped.Load() {
			o := <-start(tr, &transport.Call{Script: where, NumKeys: 1, Args: []any{"written"}})
			if info, ok := o.reply.([]byte); ok {
				_, after, _ := strings.Cut(string(info), "tcp_port:")
				port, _, _ := strings.Cut(after, "\r")
				w.note(port)
			}
			<-time.After(2 * time.Millisecond)
		}
	}()
	return w
}

func (w *writing) note(port string) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first[port].IsZero() {
		w.first[port] = now
	}
	w.last[port] = now
}

// on returns when the server at addr has answered first and last.
func (w *writing) on(addr string) (first, last time.Time) {
	_, port, _ := net.SplitHostPort(addr)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.first[port], w.last[port]
}

func (w *writing) stop() {
	w.stopped.Store(true)
	<-w.over
}

func TestLocksWithSentinel(t *testing.T) {
	t.Parallel()
	set := redistest.StartSentinels(t, time.Minute, redistest.WithBinary(redistest.ValkeyBinary(t)))
	d := locksuite.OnServer(set, func(tb testing.TB) transport.Transport {
		tb.Helper()
		return overSentinels(tb, sentinels(set))
	})
	d.WaitsForReplicas(t, locksuite.Replicas{Masters: set.Servers()[:1], Servers: set.Servers()[1:], Each: 2, Watched: true})
	locksuite.Run(t, d)
}
