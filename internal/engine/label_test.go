package engine

import (
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/transport"
)

// labeled is a client with a label, on fake time.
type labeled struct {
	*Engine
	tr    *faketransport.Reconnecting
	log   *faketransport.Log
	began time.Time
	seen  int
	fails atomic.Pointer[transport.ServerError] // of SET
}

func newLabeled(t *testing.T) *labeled {
	t.Helper()
	l := &labeled{began: time.Now()}
	l.tr = &faketransport.Reconnecting{Back: make(chan struct{}), Fake: &faketransport.Fake{
		Answer: func(c *faketransport.SentCall) (any, error, bool) {
			if err := l.fails.Load(); err != nil && c.Name == "SET" {
				return nil, err, true
			}
			return nil, nil, true
		},
	}}
	l.Engine, l.log = engineOver(t, l.tr)
	l.ClientID = uuid.MustParse("0193e6a1-7a58-7c4d-9d5f-3f6f0b8f3a11")
	l.Label = "billing"
	return l
}

// took returns the calls since it was last called, with their times.
func (l *labeled) took() (calls []string) {
	synctest.Wait()
	for _, c := range l.tr.Sent()[l.seen:] {
		calls = append(calls, c.At.Sub(l.began).String()+" "+c.Name)
		l.seen++
	}
	return calls
}

func TestLabelWrittenFromFirstAnnounceUntilClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLabeled(t)
		time.Sleep(time.Hour)
		require.Empty(t, l.took())
		l.began = time.Now()
		for range 3 {
			l.Announce()
		}
		require.Equal(t, []string{"0s SET"}, l.took())
		time.Sleep(2*labelPeriod + time.Second)
		require.Equal(t, []string{"1m0s SET", "2m0s SET"}, l.took())
		back := l.tr.Back
		l.tr.Back = make(chan struct{})
		close(back)
		require.Equal(t, []string{"2m1s SET"}, l.took(), "the server may be another one")
		require.Zero(t, closeTakes(t, l.Engine))
		require.Equal(t, []string{"2m1s DEL"}, l.took())
		require.Zero(t, l.inFlight.Load())
		l.Announce()
		time.Sleep(time.Hour)
		require.Empty(t, l.took())
		require.Empty(t, l.log.String())
	})
}

// A server without memory refuses SET, even of an existing label.
func TestLabelSurvivesOutOfMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLabeled(t)
		const key = "redlatch:label:0193e6a1-7a58-7c4d-9d5f-3f6f0b8f3a11"
		args := map[string][]any{}
		rule := l.tr.Answer
		l.tr.Answer = func(c *faketransport.SentCall) (any, error, bool) {
			require.Equal(t, key, c.Call.Key(0))
			args[c.Name] = slices.Clone(c.Call.Args)
			return rule(c)
		}
		l.Announce()
		require.Equal(t, []string{"0s SET"}, l.took())
		l.fails.Store(&transport.ServerError{Text: "OOM command not allowed when used memory > 'maxmemory'."})
		time.Sleep(labelPeriod)
		require.Equal(t, []string{"1m0s SET", "1m0s PEXPIRE"}, l.took())
		require.NoError(t, l.Close())
		require.Equal(t, []string{"1m0s DEL"}, l.took())
		require.Equal(t, map[string][]any{
			"SET":     {key, "billing", "PX", int64(600_000)},
			"PEXPIRE": {key, int64(600_000)},
			"DEL":     {key},
		}, args)
		require.Equal(t, key, LabelKey(l.ClientID))
	})
}

func TestFailedLabelIsLoggedOnceAndRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLabeled(t)
		l.fails.Store(&transport.ServerError{Text: "LOADING"})
		l.Announce()
		time.Sleep(4 * time.Minute)
		require.Equal(t, []string{
			"0s SET", "1s SET", "3s SET", "7s SET", "15s SET", "31s SET", "1m3s SET", "2m3s SET", "3m3s SET",
		}, l.took())
		require.Equal(t, 1, l.log.Count("cannot write the client's label"))
		l.fails.Store(nil)
		time.Sleep(3 * time.Minute)
		require.Equal(t, []string{"4m3s SET", "5m3s SET", "6m3s SET"}, l.took())
		require.Equal(t, 1, l.log.Count("again"))
	})
}

// A write without a reply must delay Close only by the DEL's command timeout.
func TestCloseInterruptsLabelWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLabeled(t)
		l.tr.Answer = nil
		l.Announce()
		synctest.Wait()
		require.Equal(t, testCommand, closeTakes(t, l.Engine))
		require.Equal(t, []string{"0s SET", "0s DEL"}, l.took())
		require.Empty(t, l.log.String())
	})
}

// Close must not wait long for a label that the user did not choose, whether Redis is down or hangs.
func TestCloseRemovesDefaultLabelBriefly(t *testing.T) {
	for _, down := range []bool{true, false} {
		for optional, takes := range map[bool]time.Duration{true: labelRemoval, false: testCommand} {
			synctest.Test(t, func(t *testing.T) {
				l := newLabeled(t)
				l.LabelOptional = optional
				l.tr.Answer = nil
				if l.tr.Queues = down; down && !optional {
					takes /= 2 // for calls that are never sent
				}
				l.Announce()
				synctest.Wait()
				require.Equal(t, takes, closeTakes(t, l.Engine))
				require.Equal(t, []string{"0s SET", "0s DEL"}, l.took())
			})
		}
	}
}

func TestClientWithoutAnnounceOrLabelSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closing, none := newLabeled(t), newLabeled(t)
		closing.label.close() // as Close does, before goroutines can no longer begin
		closing.Announce()
		require.Empty(t, closing.took())
		require.NoError(t, closing.Close())
		none.Label = ""
		none.Announce()
		require.NoError(t, none.Close())
		require.Empty(t, none.took())
	})
}

func TestCheckLabelRequiresOnePrintableLine(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"", "billing@host-3 pid 812", "Rechnungslauf für März", strings.Repeat("x", MaxLabel)} {
		require.NoError(t, CheckLabel(good))
	}
	for bad, says := range map[string]string{
		strings.Repeat("x", MaxLabel+1): "201 bytes",
		"two\nlines":                    "must be printable",
		"\x1b[2J":                       "must be printable",
		"a\x00b":                        "must be printable",
		"\xff":                          "UTF-8",
	} {
		require.ErrorContains(t, CheckLabel(bad), says)
	}
}

func TestDefaultLabelIsValidAndBounded(t *testing.T) {
	t.Setenv(LabelEnv, "")
	require.Empty(t, DefaultLabel([]string{"report.sh"}))
	t.Setenv(LabelEnv, "nightly\n"+strings.Repeat("ü", MaxLabel))
	require.NoError(t, CheckLabel(DefaultLabel(nil)))
	require.Contains(t, DefaultLabel(nil), "nightly?ü")
	require.NoError(t, os.Unsetenv(LabelEnv))
	require.Regexp(t, `^report\.sh@\S+ pid \d+$`, DefaultLabel([]string{"/opt/jobs/report.sh", "--full"}))
	require.Regexp(t, `^unknown@`, DefaultLabel(nil))
	for _, hostile := range []string{"", "\x1b[2J\n", "\xff\xfe", strings.Repeat("ü", MaxLabel), strings.Repeat("\xf0", MaxLabel)} {
		label := DefaultLabel([]string{hostile})
		require.NoError(t, CheckLabel(label), "%q", label)
		require.LessOrEqual(t, len(label), 2*mostNamed+len("@ pid 9223372036854775807"))
	}
}

// A user without the right must not fill the server's ACL LOG.
func TestDeniedDefaultLabelIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLabeled(t)
		l.LabelOptional = true
		l.fails.Store(&transport.ServerError{Text: "NOPERM this user has no permissions to run the 'set' command"})
		l.Announce()
		time.Sleep(time.Hour)
		require.Equal(t, []string{"0s SET"}, l.took())
		back := l.tr.Back
		l.tr.Back = make(chan struct{})
		close(back)
		require.Equal(t, []string{"1h0m0s SET"}, l.took(), "it may have the right now")
		require.NoError(t, l.Close())
		require.Empty(t, l.took())
		require.Empty(t, l.log.String())
	})
}
