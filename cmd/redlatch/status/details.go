package status

import (
	"context"
	"fmt"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
)

// readDetails reads what belongs to the lock but is not part of it: the labels of the owners
// that are shown, what each reader has left of its lease, and how many clients wait for it
// as for a plain lock. What cannot be read is left out: the lock itself has been shown.
func (s *status) readDetails(ctx context.Context, srv *connect.Server) {
	c, err := srv.Dial(ctx)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }() // only read from
	owners := s.front(len(s.Queue))
	var last []waiter
	if s.More != nil {
		last = s.More.Last
	}
	for i := range last {
		owners = append(owners, last[i].Owner)
	}
	for _, h := range s.Holders {
		owners = append(owners, h.Owner)
	}
	labels, err := listing.Labels(c, owners)
	if err != nil {
		return
	}
	for i := range s.Holders {
		s.Holders[i].Label = labels[s.Holders[i].Owner]
	}
	for i := range s.Queue {
		s.Queue[i].Label = labels[s.Queue[i].Owner]
	}
	for i := range last {
		last[i].Label = labels[last[i].Owner]
	}
	s.Token, _ = listing.Token(c, s.Name) // 0 when it is unknown
	s.Kind = string(listing.Kind(s.Kind).WithToken(s.Token))
	readWrite := s.Kind == string(listing.ReadWrite)
	if readWrite {
		inspect.ReadLeases(c, s.Name, s.Holders)
	}
	if s.length() > 0 || readWrite {
		// A waiter of a fair lock listens to a channel of its own, not to this one.
		s.PlainWaiters = listening(ctx, c, codec.LockChannel(s.Name))
	}
	if s.Held && !readWrite {
		s.ReadWriteWaiters = listening(ctx, c, codec.ReadWriteChannel(s.Name))
	}
}

// listening returns how many connections listen to a channel, 0 when that is unknown.
func listening(ctx context.Context, c redis.Conn, channel string) int64 {
	counts, err := connect.Listening(ctx, c, channel)
	if err != nil {
		return 0
	}
	return counts[0]
}

// mixed warns of two kinds of lock of one name.
func (s *status) mixed() string {
	const another = "; it is another lock, and Redisson's of both kinds do not exclude each other"
	switch {
	case s.ReadWriteWaiters > 0:
		return connections(s.ReadWriteWaiters) + " for this name as for a read/write lock, and it is held as a plain one" + another
	case s.Kind == string(listing.ReadWrite):
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
