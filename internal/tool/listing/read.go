package listing

import (
	"context"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/limits"
)

// glance is how many fields of a hash are asked for. Small hashes answer with all of
// their fields whatever is asked.
const glance = 16

// read looks at the hashes with these names and returns those that are locks. With
// queued the names are of locks that have a queue: those without a hash are free.
func (s *scan) read(ctx context.Context, names []string, queued bool) ([]*Lock, error) {
	locks, err := s.shapes(names, queued)
	if err != nil || len(locks) == 0 {
		return nil, err
	}
	if locks, err = s.details(locks); err != nil {
		return nil, err
	}
	if err := s.places(locks); err != nil {
		return nil, err
	}
	s.countWaiters(ctx, locks)
	if s.NoLabels {
		return locks, nil
	}
	return locks, s.label(locks)
}

// shapes finds the locks by their fields.
func (s *scan) shapes(names []string, queued bool) ([]*Lock, error) {
	calls := make([]call, len(names))
	for i, name := range names {
		calls[i] = command("HSCAN", name, 0, "COUNT", glance)
	}
	replies, err := ask(s.Conn, calls)
	if err != nil {
		return nil, err
	}
	var locks []*Lock
	for i, reply := range replies {
		if refused, is := refusal(reply); is {
			s.refused(refused)
			continue
		}
		fields, more, ok := fieldsOf(reply)
		switch {
		case !ok: // it is another kind of key by now
		case len(fields) == 0 && queued:
			locks = append(locks, &Lock{Name: names[i], Kind: Fair})
		default:
			if lock := recognise(names[i], fields, more); lock != nil {
				locks = append(locks, lock)
			}
		}
	}
	return locks, nil
}

// fieldsOf decodes the reply to HSCAN.
func fieldsOf(reply any) (fields [][2]string, more, ok bool) {
	parts, err := redis.Values(reply, nil)
	if err != nil || len(parts) != 2 {
		return nil, false, false
	}
	all, err := redis.Strings(parts[1], nil)
	if err != nil {
		return nil, false, false
	}
	for i := 0; i+1 < len(all); i += 2 {
		fields = append(fields, [2]string{all[i], all[i+1]})
	}
	return fields, text(parts[0]) != "0", true
}

// asked is how many calls details makes for each lock.
const asked = 5

// details reads the details of the locks, and drops those that are gone.
func (s *scan) details(locks []*Lock) ([]*Lock, error) {
	var calls []call
	for _, l := range locks {
		queue := l.QueueKey()
		calls = append(calls, command("PTTL", l.Name), command("LLEN", queue), command("LINDEX", queue, 0),
			command("HGET", l.Name, modeField), tokenCall(l.Name))
	}
	replies, err := ask(s.Conn, calls)
	if err != nil {
		return nil, err
	}
	var still []*Lock
	at := time.Now()
	for i, l := range locks {
		l.At = at
		if l.take(replies[asked*i : asked*(i+1)]) {
			still = append(still, l)
		}
	}
	return still, nil
}

// take takes the answers about a lock in, and reports whether there is one.
func (l *Lock) take(replies []any) bool {
	left, isNumber := replies[0].(int64)
	l.Queue, l.Next = number(replies[1]), text(replies[2])
	switch {
	case isNumber && left >= 0:
		l.TTL = limits.FromMillis(left)
	case left == -2: // it is gone
		l.Holders, l.More, l.TTL = nil, false, 0
	default:
		l.TTL = redlatch.NoTTL
	}
	switch {
	case l.Queue > 0 && l.Kind != ReadWrite:
		l.Kind = Fair
	case len(l.Holders) == 0:
		return false // free, with an empty queue
	}
	l.Token = tokenOf(replies[4])
	l.Kind = l.Kind.WithToken(l.Token)
	if l.Kind == ReadWrite && l.Mode == "" {
		l.Mode = text(replies[3])
	}
	return l.Kind != ReadWrite || isMode(l.Mode)
}

// places reads the first places of the queues, if they are wanted. A queue that the user may not
// read has none.
func (s *scan) places(locks []*Lock) error {
	var queued []*Lock
	var calls []call
	for _, l := range locks {
		if l.Queue > 0 && s.Places > 0 {
			queued = append(queued, l)
			calls = append(calls, command("LRANGE", l.QueueKey(), 0, s.Places-1))
		}
	}
	replies, err := ask(s.Conn, calls)
	if err != nil {
		return err
	}
	for i, l := range queued {
		if l.Places, err = redis.Strings(replies[i], nil); err != nil {
			l.Places = nil // refused, or it is another kind of key by now
		}
	}
	return nil
}

// label looks up the labels of the locks' holders, next owners and places.
func (s *scan) label(locks []*Lock) error {
	var owners []string
	for _, l := range locks {
		for _, h := range l.Holders {
			owners = append(owners, h.Owner)
		}
		owners = append(append(owners, l.Next), l.Places...)
	}
	labels, err := Labels(s.Labels, owners)
	if err != nil {
		return err
	}
	for _, l := range locks {
		for i := range l.Holders {
			l.Holders[i].Label = labels[l.Holders[i].Owner]
		}
		l.NextLabel = labels[l.Next]
		for _, owner := range l.Places {
			l.PlaceLabels = append(l.PlaceLabels, labels[owner])
		}
	}
	return nil
}
