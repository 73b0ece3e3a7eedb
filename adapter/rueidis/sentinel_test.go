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

	"github.com/redlatch/redlatch/adapter/rueidis"
	"github.com/redlatch/redlatch/internal/locksuite"
	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/transport"
)

// TestASwitchOfMastersIsActedOn lets Sentinel name another master while the old one
// goes on working, and takes writes that are lost.
func TestASwitchOfMastersIsActedOn(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]rueidis.Option{
		"at once":                      {rueidis.WithServerClient(direct)},
		"when the client has followed": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := redistest.StartSentinels(t, 2*time.Second)
			tr := opened(t, clientOf(t, sentinels(set)), opts...)
			sub := subscribe(t, tr, "channel")
			w := writeOn(tr)
			told := set.WatchSwitch(t)
			// The Sentinels must have been heard once, which they are every two seconds.
			<-time.After(2500 * time.Millisecond)
			set.Failover(t)
			sw := told()
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
			assert.Less(t, left.Sub(sw.At), 1500*time.Millisecond, "it went on writing to the old master")
			if opts != nil {
				assert.Less(t, moved.Sub(sw.At), 1500*time.Millisecond)
				assert.Less(t, heard, 1500*time.Millisecond)
			}
			set.Do(t, "PUBLISH", "channel", "there")
			for e := event(t, sub); e.Payload != "there"; {
				e = event(t, sub)
			}
		})
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
	client := clientOf(t, sentinels(set))
	d := deployment(client, onOne(set), "PUBLISH")
	d.New = func(tb testing.TB) transport.Transport {
		tb.Helper()
		return over(tb, client, rueidis.WithServerClient(direct))
	}
	d.WaitsForReplicas(t, locksuite.Replicas{Masters: set.Servers()[:1], Servers: set.Servers()[1:], Each: 2, Watched: true})
	locksuite.Run(t, d)
}

func TestLocksGoOnAfterTheMasterIsKilled(t *testing.T) {
	t.Parallel()
	set := redistest.StartSentinels(t, time.Second)
	client := clientOf(t, sentinels(set))
	d := deployment(client, onOne(set), "PUBLISH")
	var crowds []*locksuite.Crowd
	for _, kind := range locksuite.Kinds {
		crowds = append(crowds, d.StartCrowd(t, kind, 4, redistest.Key(t)))
	}
	for _, crowd := range crowds {
		crowd.AwaitProgress(10)
	}
	master := set.Master(t)
	master.Kill()
	set.AwaitMaster(t, master)
	for i, crowd := range crowds {
		crowd.AwaitProgress(10)
		v := crowd.Stop()
		t.Logf("%s: %+v", locksuite.Kinds[i].Name, v)
		assert.Less(t, v.Longest, 15*time.Second)
	}
}
