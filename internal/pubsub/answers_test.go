package pubsub

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

func TestServerInitiatedUnsubscribeIsUndoneAndReported(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"unsubscribe", "sunsubscribe"} {
		onFakeTime(t, func(f *fakeServer, s *Subscriber) {
			t := f.t
			l := mustSubscribe(t, s, "c")
			otherSub := mustSubscribe(t, s, "d")
			start := time.Now()
			f.push(array(word, "c") + ":0\r\n")
			require.Equal(t, transport.Event{Gap: true}, awaitEvent(t, l))
			require.Zero(t, time.Since(start))
			require.Equal(t, []string{"PING", "SUBSCRIBE c", "SUBSCRIBE d", "SUBSCRIBE c"}, f.Commands())
			requireNoEvent(t, otherSub)
			f.push(array(word, "stranger") + ":0\r\n")
			require.Len(t, f.Commands(), 4)
		})
	}
}

func TestStaleConfirmationEstablishesNoSubscription(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		f.mute.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Subscribe(ctx, "c")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		done := subscribeLater(s, "c")
		synctest.Wait()
		require.Equal(t, []string{"PING", "SUBSCRIBE c", "UNSUBSCRIBE c", "SUBSCRIBE c"}, f.Commands())
		for _, answer := range []string{"+PONG\r\n", array("subscribe", "c") + ":1\r\n", array("unsubscribe", "c") + ":0\r\n"} {
			f.push(answer)
			require.Equal(t, 1, s.Stats().Pending, "after %q", answer)
		}
		f.push(array("subscribe", "c") + ":1\r\n")
		require.NoError(t, <-done)
		require.Len(t, f.Dials(), 1)
	})
}

func TestConfirmationForOtherChannelIsIgnored(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		d := mustSubscribe(t, s, "d")
		f.mute.Store(true)
		done := subscribeLater(s, "c")
		synctest.Wait()
		for _, word := range []string{"sunsubscribe", "subscribe"} {
			f.push(array(word, "d") + ":1\r\n")
			require.Equal(t, 1, s.Stats().Pending)
		}
		requireNoEvent(t, d) // the second message does not confirm the resubscription, which comes later
		f.push(array("subscribe", "c") + ":1\r\n")
		require.NoError(t, <-done)
		f.push(array("subscribe", "d") + ":2\r\n")
		require.Equal(t, transport.Event{Gap: true}, awaitEvent(t, d))
		require.Len(t, f.Dials(), 1)
	})
}

func TestUnsolicitedErrorClosesConnection(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		l := mustSubscribe(t, s, "c")
		f.push("-ERR out of the blue\r\n")
		require.Equal(t, transport.Event{Gap: true}, awaitEvent(t, l))
		require.Len(t, f.Dials(), 2)
	})
}

// refusing returns a server that rejects the channel "secret" and the given commands.
func refusing(t *testing.T, commands ...string) *fakeServer {
	t.Helper()
	return &fakeServer{t: t, refuse: func(command string) string {
		word, names, _ := strings.Cut(command, " ")
		if slices.Contains(commands, word) ||
			(word == "SUBSCRIBE" && slices.Contains(strings.Fields(names), "secret")) {
			return "NOPERM this user has no permissions"
		}
		return ""
	}}
}

func TestOneForbiddenChannelFailsAlone(t *testing.T) {
	onServer(t, refusing(t, "PING"), func(f *fakeServer, s *Subscriber) {
		t := f.t
		const n = 10
		start := time.Now()
		var attempts []<-chan error
		for i := range n + 1 {
			name := fmt.Sprint("c", i)
			if i == n/2 {
				name = "secret"
			}
			attempts = append(attempts, subscribeLater(s, name))
		}
		failures := 0
		for _, done := range attempts {
			if err := <-done; err != nil {
				failures++
				require.True(t, transport.IsCode(err, "NOPERM"))
			}
		}
		require.Equal(t, 1, failures)
		require.Zero(t, time.Since(start))
		require.Equal(t, Stats{Channels: n, Listeners: n, Connected: true, Dials: 1}, s.Stats())
		time.Sleep(time.Minute)
		synctest.Wait()
		commands := strings.Join(f.Commands(), "\n")
		require.LessOrEqual(t, strings.Count(commands, "secret"), 2, "an endless loop: %s", commands)
	})
}

func TestChannelForbiddenOnReconnectFailsPermanently(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		secret, other := mustSubscribe(t, s, "secret"), mustSubscribe(t, s, "other")
		synctest.Wait()
		f.refuse = refusing(t).refuse
		f.Cut()
		require.Equal(t, transport.Event{Gap: true}, awaitEvent(t, other))
		require.True(t, transport.IsCode(requireFailed(t, secret), "NOPERM"))
		secret.Close()
		require.Error(t, secret.Err())
		require.Equal(t, Stats{Channels: 1, Listeners: 1, Connected: true, Dials: 2}, s.Stats())
	})
}

func TestFailedUnsubscribeIsIgnored(t *testing.T) {
	onServer(t, refusing(t, "UNSUBSCRIBE"), func(f *fakeServer, s *Subscriber) {
		t := f.t
		other := mustSubscribe(t, s, "other")
		mustSubscribe(t, s, "c").Close()
		synctest.Wait()
		f.publish("message", "c", "0")
		require.Equal(t, Stats{Channels: 1, Listeners: 1, Connected: true, Dials: 1}, s.Stats())
		l := mustSubscribe(t, s, "c")
		f.publish("message", "c", "0")
		require.Equal(t, transport.Event{Payload: "0"}, awaitEvent(t, l))
		requireNoEvent(t, other)
	})
}

// Valkey rejects UNSUBSCRIBE on a connection whose subscriptions it has already ended itself.
func TestRejectedUnsubscribeAffectsNoOtherSubscription(t *testing.T) {
	onServer(t, &fakeServer{}, func(f *fakeServer, s *Subscriber) {
		t := f.t
		gone := mustSubscribe(t, s, "c")
		f.mute.Store(true)
		gone.Close()
		synctest.Wait()
		f.push(array("unsubscribe", "c") + ":0\r\n") // sent by the server unprompted
		done := subscribeLater(s, "d")
		synctest.Wait()
		require.Equal(t, []string{"PING", "SUBSCRIBE c", "UNSUBSCRIBE c", "SUBSCRIBE d"}, f.Commands())
		f.push("-NOSUB 'unsubscribe' command executed not in subscribed mode\r\n")
		require.Equal(t, 1, s.Stats().Pending, "that answers UNSUBSCRIBE c")
		f.push(array("subscribe", "d") + ":1\r\n")
		require.NoError(t, <-done)

		// This time, no other message was mistaken for the answer, so the error is the answer.
		f.mute.Store(false)
		again := mustSubscribe(t, s, "e")
		f.mute.Store(true)
		again.Close()
		synctest.Wait()
		f.push("-NOSUB 'unsubscribe' command executed not in subscribed mode\r\n")
		require.Equal(t, 1, s.Stats().Channels, "d")
	})
}
