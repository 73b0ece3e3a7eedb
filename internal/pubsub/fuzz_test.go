package pubsub

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

// FuzzPushes sends arbitrary data to a table with one acked and one asked channel. Afterwards, its listeners
// can still be ended.
func FuzzPushes(f *testing.F) {
	for _, word := range []string{"message", "smessage", "subscribe", "unsubscribe", "sunsubscribe", "pong", "psubscribe", ""} {
		f.Add(uint8(3), []byte(word), []byte("asked"), []byte("0"))
		f.Add(uint8(2), []byte(word), []byte("acked"), []byte(nil))
		f.Add(uint8(4), []byte(word), []byte{0xff}, []byte("1"))
	}
	f.Add(uint8(0), []byte("PONG"), []byte(nil), []byte(nil))
	f.Add(uint8(1), []byte("NOPERM no"), []byte(nil), []byte(nil))
	f.Add(byte('\x03'), []byte("message"), []byte("0"), []byte("0"))
	f.Fuzz(func(t *testing.T, shape uint8, word, name, payload []byte) {
		sub := &Subscriber{table: table{channels: map[string]*channel{}, most: batchSize}}
		acked, asked := pushTable(t, sub)
		for range 3 { // repeated messages find the state that the first one left
			takePush(sub, shape, word, name, payload)
			sub.table.collect(time.Second)
		}
		for _, l := range []*listener{acked, asked} {
			sub.leave(l)
		}
		sub.table.failAll(transport.ErrClosed)
		listeners, pending := sub.table.count()
		require.Zero(t, listeners+pending)
	})
}

// pushTable returns a table with the channels "acked" and "asked".
func pushTable(t *testing.T, sub *Subscriber) (acked, asked *listener) {
	t.Helper()
	sub.wake = make(chan struct{}, 1)
	acked = &listener{sub: sub, events: make(chan transport.Event, 1)}
	asked = &listener{sub: sub, events: make(chan transport.Event, 1)}
	sub.table.attach()
	sub.table.join("acked", acked)
	sub.table.collect(0)
	sub.table.pong()
	require.True(t, sub.table.acknowledge(subscribe, "acked"))
	sub.table.join("asked", asked)
	sub.table.collect(0)
	return acked, asked
}

func takePush(sub *Subscriber, shape uint8, word, name, payload []byte) {
	all := []any{word, name, payload, int64(1), nil}
	var reply any = all[:min(int(shape), len(all))]
	if shape == 0 {
		reply = string(word)
	}
	if shape == 1 {
		_, _ = sub.refuse(&transport.ServerError{Text: string(word)})
		return
	}
	_ = (&session{sub: sub}).take(reply, nil)
}
