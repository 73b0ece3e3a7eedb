package pubsub

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/transport"
)

func TestAnyPayloadOnlyWakes(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		l, other := mustSubscribe(t, s, "c"), mustSubscribe(t, s, "d")
		for _, payload := range []string{"", "\x00", "\xff\xfe", "0\r\n:1\r\n", "-1", "99999999999999999999", strings.Repeat("x", 1<<20)} {
			f.publish("message", "c", payload)
			require.Equal(t, transport.Event{Payload: payload}, awaitEvent(t, l))
			requireNoEvent(t, other)
		}
		require.Len(t, f.Dials(), 1)
	})
}

func TestMessagesWithoutSubscriberAreDropped(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		l := mustSubscribe(t, s, "c")
		var flood strings.Builder
		for i := range testlevel.Rounds(2_000, 10_000) {
			for _, word := range []string{"message", "subscribe", "unsubscribe", "sunsubscribe", "nonsense"} {
				flood.WriteString(array(word, fmt.Sprint("stranger", i)))
				flood.WriteString("$1\r\n0\r\n")
			}
		}
		f.push(flood.String())
		requireNoEvent(t, l)
		require.Equal(t, Stats{Channels: 1, Listeners: 1, Connected: true, Dials: 1}, s.Stats())
		f.publish("message", "c", "0")
		require.Equal(t, transport.Event{Payload: "0"}, awaitEvent(t, l))
		require.Equal(t, []string{"PING", "SUBSCRIBE c"}, f.Commands())
	})
}

func TestRevokedSubscriptionIsRequestedOnceEach(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		l := mustSubscribe(t, s, "c")
		const times = 100
		for range times {
			f.push(array("unsubscribe", "c") + ":0\r\n")
			require.Equal(t, transport.Event{Gap: true}, awaitEvent(t, l))
		}
		require.Len(t, f.Commands(), 2+times)
		f.push(strings.Repeat(array("unsubscribe", "c")+":0\r\n", times)) // all before the first answer
		require.Equal(t, transport.Event{Gap: true}, awaitEvent(t, l))
		require.LessOrEqual(t, len(f.Commands()), 2+2*times)
		l.Close()
		synctest.Wait()
		require.Zero(t, s.Stats().Channels)
	})
}

func TestMalformedInputClosesConnectionAndReportsGap(t *testing.T) {
	t.Parallel()
	for _, noise := range []string{
		"HTTP/1.1 400 Bad Request\r\n\r\n", "\r\n", "$x\r\n", "%1\r\n", "$99999999999999999999\r\n", "*99999999999999999999\r\n",
		"*3\r\n$7\r\nmessage\r\n$99999999999999999999\r\n",
	} {
		onFakeTime(t, func(f *fakeServer, s *Subscriber) {
			l := mustSubscribe(f.t, s, "c")
			began := time.Now()
			f.push(noise)
			require.Equal(f.t, transport.Event{Gap: true}, awaitEvent(f.t, l), "%q", noise)
			require.Less(f.t, time.Since(began), time.Second)
			require.Len(f.t, f.Dials(), 2)
		})
	}
}

func TestUnknownPushesAreIgnored(t *testing.T) {
	t.Parallel()
	onFakeTime(t, func(f *fakeServer, s *Subscriber) {
		l := mustSubscribe(f.t, s, "c")
		for _, text := range []string{
			":1\r\n", "*0\r\n", "*1\r\n+message\r\n", "$-1\r\n", "*-1\r\n", "+hello\r\n", "*3\r\n-ERR no\r\n$-1\r\n:0\r\n",
			"*2\r\n$7\r\nmessage\r\n$1\r\nc\r\n", "*3\r\n$7\r\nmessage\r\n$-1\r\n$-1\r\n",
			"*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$1\r\nc\r\n$1\r\n0\r\n", "*4\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n0\r\n:0\r\n",
			array("subscribe", "c") + ":1\r\n", "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n",
		} {
			f.push(text)
			require.Empty(f.t, l.Events(), "%q", text)
		}
		f.publish("message", "c", "")
		require.Equal(f.t, transport.Event{}, awaitEvent(f.t, l))
		require.Equal(f.t, []string{"PING", "SUBSCRIBE c"}, f.Commands(), "on one connection")
	})
}
