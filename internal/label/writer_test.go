package label

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errAway = errors.New("the server is away")

// office is all that a writer needs, on fake time.
type office struct {
	began time.Time
	log   bytes.Buffer

	mu    sync.Mutex // guards what follows
	sent  []string   // what was sent, and when
	err   error      // what sending gives
	again chan struct{}
	open  int
}

func newOffice() *office { return &office{began: time.Now(), again: make(chan struct{})} }

func (o *office) writer() *Writer {
	return New(Config{
		Key:  "key",
		Text: "text",
		Go:   func(f func()) bool { go f(); return true },
		Send: o.send,
		Reconnected: func() <-chan struct{} {
			o.mu.Lock()
			defer o.mu.Unlock()
			return o.again
		},
		Join:   func() { o.count(1) },
		Leave:  func() { o.count(-1) },
		Logger: slog.New(slog.NewTextHandler(&o.log, nil)),
	})
}

func (o *office) send(_ <-chan struct{}, fill func(*transport.Call)) error {
	var c transport.Call
	fill(&c)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent = append(o.sent, time.Since(o.began).String()+" "+c.Command)
	return o.err
}

func (o *office) count(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open += n
}

func (o *office) fails(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
}

func (o *office) reconnects() {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.again)
	o.again = make(chan struct{})
}

// took returns what was sent since it was last asked.
func (o *office) took() []string {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	sent := o.sent
	o.sent = nil
	return sent
}

func TestALabelIsWrittenFromTheFirstStartUntilStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice()
		w := o.writer()
		time.Sleep(time.Hour)
		require.Empty(t, o.took(), "no lock was requested yet")
		o.began = time.Now()
		for range 3 {
			w.Start()
		}
		require.Equal(t, []string{"0s SET"}, o.took())
		time.Sleep(2*Period + time.Second)
		require.Equal(t, []string{"1m0s SET", "2m0s SET"}, o.took())
		o.reconnects()
		require.Equal(t, []string{"2m1s SET"}, o.took(), "the server may be another, and empty")
		w.Stop()
		w.Stop()
		require.Equal(t, []string{"2m1s DEL"}, o.took())
		require.Zero(t, o.open, "the farewell was counted in, and out again")
		w.Start()
		time.Sleep(time.Hour)
		require.Empty(t, o.took())
		require.Empty(t, o.log.String())
	})
}

// A server without memory refuses SET, also of a label that it has. That one stays.
func TestALabelIsKeptOnAServerWithoutMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice()
		w := o.writer()
		w.Start()
		require.Equal(t, []string{"0s SET"}, o.took())
		o.fails(&transport.ServerError{Text: "OOM command not allowed when used memory > 'maxmemory'."})
		time.Sleep(Period)
		require.Equal(t, []string{"1m0s SET", "1m0s PEXPIRE"}, o.took())
		w.Stop()
		require.Equal(t, []string{"1m0s DEL"}, o.took())
	})
}

func TestALabelThatCannotBeWrittenIsLoggedOnceAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice()
		w := o.writer()
		o.fails(errAway)
		w.Start()
		time.Sleep(4 * time.Minute)
		require.Equal(t, []string{
			"0s SET", "1s SET", "3s SET", "7s SET", "15s SET", "31s SET", "1m3s SET", "2m3s SET", "3m3s SET",
		}, o.took())
		require.Equal(t, 1, strings.Count(o.log.String(), "cannot be written"))
		o.fails(nil)
		time.Sleep(3 * time.Minute)
		require.Equal(t, []string{"4m3s SET", "5m3s SET", "6m3s SET"}, o.took())
		require.Equal(t, 1, strings.Count(o.log.String(), "again"))
		o.fails(errAway)
		w.Stop()
		require.Equal(t, []string{"7m0s DEL"}, o.took(), "one farewell, whatever becomes of it")
	})
}

func TestAWriterThatWasNeverStartedLeavesNothingToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var none *Writer
		none.Start()
		none.Stop()
		o := newOffice()
		w := o.writer()
		w.Stop()
		w.Start()
		require.Empty(t, o.took())
		require.Zero(t, o.open)
	})
}

func TestTheCallsAreThoseThatAreDocumented(t *testing.T) {
	t.Parallel()
	client := uuid.MustParse("0193e6a1-7a58-7c4d-9d5f-3f6f0b8f3a11")
	w := New(Config{Key: Key(client), Text: "billing"})
	var c transport.Call
	w.write(&c)
	require.Equal(t, "SET", c.Command)
	require.Equal(t, []any{"redlatch:label:0193e6a1-7a58-7c4d-9d5f-3f6f0b8f3a11", "billing", "PX", int64(600_000)}, c.Args)
	require.Equal(t, "redlatch:label:"+client.String(), c.Key(0))
	c.Reset()
	w.extend(&c)
	require.Equal(t, "PEXPIRE", c.Command)
	require.Equal(t, []any{Key(client), int64(600_000)}, c.Args)
	c.Reset()
	w.remove(&c)
	require.Equal(t, "DEL", c.Command)
	require.Equal(t, []any{Key(client)}, c.Args)
}

func TestALabelIsOneLineOfPrintableText(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"", "billing@host-3 pid 812", "Rechnungslauf für März", strings.Repeat("x", MaxLen)} {
		require.NoError(t, Check(good))
	}
	for bad, says := range map[string]string{
		strings.Repeat("x", MaxLen+1): "201 bytes",
		"two\nlines":                  "printed",
		"\x1b[2J":                     "printed",
		"a\x00b":                      "printed",
		"\xff":                        "UTF-8",
	} {
		require.ErrorContains(t, Check(bad), says)
	}
}
