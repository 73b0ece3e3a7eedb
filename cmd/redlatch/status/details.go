package status

import (
	"context"
	"fmt"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// readDetails reads what belongs to the lock but is not part of it: the labels of the owners
// that are shown, what each reader has left of its lease, and how many clients wait for it
// as for a plain lock. What cannot be read is left out: the lock itself has been shown.
func (s *status) readDetails(ctx context.Context, srv *connect.Server) {
	_ = connect.Use(ctx, srv.Dial, func(c redis.Conn) error {
		var owners []string
		for i := range s.Queue {
			owners = append(owners, s.Queue[i].Owner)
		}
		for i := range s.Holders {
			owners = append(owners, s.Holders[i].Owner)
		}
		labels, err := inspect.Labels(c, owners)
		if err != nil {
			return err
		}
		for i := range s.Holders {
			s.Holders[i].Label = labels[s.Holders[i].Owner]
		}
		for i := range s.Queue {
			s.Queue[i].Label = labels[s.Queue[i].Owner]
		}
		s.Token, _ = inspect.Token(c, s.Name) // 0 when it is unknown
		s.Kind = s.Kind.WithToken(s.Token)
		if s.Kind == inspect.ReadWrite {
			inspect.ReadLeases(c, s.Name, s.Holders)
		}
		s.countOthers(ctx, c)
		return nil
	})
}

// countOthers counts the connections that wait for the name as for another kind of lock; 0 when
// that is unknown. A waiter of a fair lock listens to a channel of its own.
func (s *status) countOthers(ctx context.Context, c redis.Conn) {
	counts, err := connect.Listening(ctx, c, codec.LockChannel(s.Name), codec.ReadWriteChannel(s.Name))
	if err != nil {
		return
	}
	if s.length() > 0 || s.Kind == inspect.ReadWrite {
		s.PlainWaiters = counts[0]
	}
	if s.Held && s.Kind != inspect.ReadWrite {
		s.ReadWriteWaiters = counts[1]
	}
}

// mixed warns of two kinds of lock of one name.
func (s *status) mixed() string {
	const another = "; it is another lock, and Redisson's of both kinds do not exclude each other"
	switch {
	case s.ReadWriteWaiters > 0:
		return connections(s.ReadWriteWaiters) + " for this name as for a read/write lock, and it is held as a plain one" + another
	case s.Kind == inspect.ReadWrite:
		return connections(s.PlainWaiters) + " for this name as for a plain lock, and it is held as a read/write lock" + another
	}
	return connections(s.PlainWaiters) + " for this name as for a plain lock, others are queued for it as for " +
		"a fair one: it is one lock, and a client that takes it as a plain one overtakes the queue"
}

func connections(n int64) string {
	if n == 1 {
		return "1 connection waits"
	}
	return fmt.Sprintf("%d connections wait", n)
}
