package redistest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func awaitSeen(t *testing.T, h *Held) {
	t.Helper()
	select {
	case <-h.Seen():
	case <-time.After(soon):
		require.Fail(t, "the text was never seen")
	}
}

func TestHoldMatchingStopsCommandAndFollowing(t *testing.T) {
	t.Parallel()
	s, p, key := through(t)
	h := p.HoldMatching(ToServer, key+"-held")
	c := dial(t, p.Addr())
	for _, suffix := range []string{"-before", "-held", "-after"} {
		require.NoError(t, c.Send("SET", key+suffix, "v"))
	}
	require.NoError(t, c.Flush())
	awaitSeen(t, h)
	_, err := c.Receive()
	require.NoError(t, err)
	require.True(t, exists(t, s, key+"-before"))
	require.False(t, exists(t, s, key+"-held"))
	require.False(t, exists(t, s, key+"-after"))

	other := dial(t, p.Addr())
	n, err := other.Do("EXISTS", key+"-held")
	require.NoError(t, err)
	require.Zero(t, n)

	h.Release()
	h.Release()
	for range 2 {
		_, err = c.Receive()
		require.NoError(t, err)
	}
	require.True(t, exists(t, s, key+"-held"))
	require.True(t, exists(t, s, key+"-after"))
}

func TestHoldMatchingFindsTextAcrossReads(t *testing.T) {
	t.Parallel()
	const before, text, after = "something ", "needle", " and more"
	stream := before + text + after
	for split := range len(stream) + 1 {
		p := &Proxy{links: map[*link]struct{}{}, tb: t}
		q := newLink(p, nil, nil, nil).pipes[ToServer]
		h := p.HoldMatching(ToServer, text)
		for _, part := range []string{stream[:split], "", stream[split:]} {
			q.push([]byte(part), false)
		}
		awaitSeen(t, h)
		passed := ""
		for s := q.next(); s.then == goOn; s = q.next() {
			passed += string(s.data)
		}
		// Bytes that were read before the text was complete have already passed.
		want := before
		if split > len(before) && split < len(before+text) {
			want = stream[:split]
		}
		require.Equal(t, want, passed, "split at %d", split)
		h.Release()
		for s := q.next(); s.then == goOn; s = q.next() {
			passed += string(s.data)
		}
		require.Equal(t, stream, passed, "split at %d", split)
	}
}

func TestHoldMatchingIgnoresPassedAndReleasedBytes(t *testing.T) {
	t.Parallel()
	_, p, key := through(t)
	c := dial(t, p.Addr())
	_, err := c.Do("ECHO", key)
	require.NoError(t, err)
	h := p.HoldMatching(ToServer, key)
	_, err = c.Do("PING")
	require.NoError(t, err)
	h.Release()
	_, err = c.Do("ECHO", key)
	require.NoError(t, err)
	select {
	case <-h.Seen():
		require.Fail(t, "it was released before the text came")
	default:
	}
}

func TestCloseStopsProxyWithHeldBytes(t *testing.T) {
	t.Parallel()
	_, p, key := through(t)
	p.KeepHalfDead(true)
	h := p.HoldMatching(ToServer, key)
	p.Latency(ToClient, time.Hour)
	c := dial(t, p.Addr())
	send(t, c, "PING")
	send(t, c, "SET", key, "v")
	awaitSeen(t, h)
	p.Blackhole()
	require.NoError(t, c.Close())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Close()
		p.Close()
	}()
	select {
	case <-done:
	case <-time.After(soon):
		require.Fail(t, "Close hangs")
	}
	h.Release()
	p.Refuse(false)
	require.Zero(t, p.Connections())
}
