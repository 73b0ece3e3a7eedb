package listing

import (
	"context"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

// question is the channel of a kind of lock that a lock is not, and where the number of its
// listeners goes: its waiters wait for another kind.
type question struct {
	channel string
	number  *int64
}

// ofOtherKinds returns what to ask about a lock. A waiter of a fair lock listens to a channel
// of its own, so that listeners of the lock's channel wait for a plain one.
func (l *Lock) ofOtherKinds() (all []question) {
	if l.Kind == ReadWrite || l.Queue > 0 {
		all = append(all, question{codec.LockChannel(l.Name), &l.PlainWaiters})
	}
	if l.Kind != ReadWrite && len(l.Holders) > 0 {
		all = append(all, question{codec.ReadWriteChannel(l.Name), &l.ReadWriteWaiters})
	}
	return all
}

// ofItsKind returns what to ask about who waits for a held lock without a queue.
func (l *Lock) ofItsKind() []question {
	switch {
	case len(l.Holders) == 0 || l.Queue > 0:
		return nil
	case l.Kind == ReadWrite:
		return []question{{codec.ReadWriteChannel(l.Name), &l.Waiting}}
	}
	return []question{{codec.LockChannel(l.Name), &l.Waiting}}
}

// countWaiters counts the waiters of other kinds than the locks are, and all if they are wanted.
// Where they cannot be counted none are known, and Unread says why; a connection that is broken has
// the error of the next command.
func (s *scan) countWaiters(ctx context.Context, locks []*Lock) {
	var questions []question
	var channels []string
	for _, l := range locks {
		of := l.ofOtherKinds()
		if s.Waiting {
			of = append(of, l.ofItsKind()...)
		}
		for _, q := range of {
			questions, channels = append(questions, q), append(channels, q.channel)
		}
	}
	if len(channels) == 0 {
		return
	}
	counts, err := connect.Listening(ctx, s.Labels, channels...)
	if err != nil {
		s.unread.Uncounted = err
		return
	}
	for i, n := range counts {
		*questions[i].number = n
	}
}
