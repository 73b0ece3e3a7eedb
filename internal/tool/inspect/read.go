package inspect

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

const glance = 16

// read omits names that are not locks. If queued is set, names without a hash are free locks.
func (s *scan) read(ctx context.Context, names []string, queued bool) ([]*Lock, error) {
	locks, err := s.shapes(names, queued)
	if err != nil || len(locks) == 0 {
		return nil, err
	}
	if locks, err = s.details(locks); err != nil {
		return nil, err
	}
	s.countWaiters(ctx, locks)
	if err := s.readInner(locks); err != nil || s.NoLabels {
		return locks, err
	}
	return locks, s.label(locks)
}

// readInner reads the waits inside the holds of locks with waiters, and the leases of their readers.
func (s *scan) readInner(locks []*Lock) error {
	var calls []call
	var holders []*Holder
	for _, l := range locks {
		if !l.Contended() {
			continue
		}
		if l.Kind == ReadWrite {
			unread := ReadLeases(s.Conn, l.Name, l.Holders)
			for i := range l.Holders {
				l.Holders[i].unsure = slices.Contains(unread, l.Holders[i].Owner)
			}
		}
		for i := range l.Holders {
			holders = append(holders, &l.Holders[i])
			calls = append(calls, command("GETRANGE", engine.NestedKey(bareOwner(l.Holders[i].Owner)), 0, engine.MaxNested-1))
		}
	}
	replies, err := ask(s.Labels, calls)
	if err != nil {
		return err
	}
	for i, reply := range replies {
		holders[i].Inner = innerOf(text(reply))
	}
	return nil
}

// Announced reports whether one of the holders announces a wait inside its hold.
func Announced(c redis.Conn, holders []Holder) (bool, error) {
	var calls []call
	for _, h := range holders {
		calls = append(calls, command("GETRANGE", engine.NestedKey(bareOwner(h.Owner)), 0, engine.MaxNested-1))
	}
	replies, err := ask(c, calls)
	return slices.ContainsFunc(replies, func(reply any) bool { return innerOf(text(reply)) != nil }), err
}

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
		case !ok:
		case len(fields) == 0 && queued:
			locks = append(locks, &Lock{Name: names[i], Kind: Fair})
		default:
			if shape := ShapeOf(fields, more); shape.Odd == "" {
				locks = append(locks, &Lock{Name: names[i], Kind: shape.Kind, Mode: shape.Mode, Holders: shape.Holders, More: more})
			}
		}
	}
	return locks, nil
}

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

const asked = 5 // calls per lock

// details drops locks that are gone.
func (s *scan) details(locks []*Lock) ([]*Lock, error) {
	var calls []call
	places := s.Places
	switch {
	case s.places >= mostPlaces:
		places = 0
	case s.places >= wholePlaces:
		places = min(places, CirclePlaces)
	}
	for _, l := range locks {
		queue := l.QueueKey()
		first := command("LINDEX", queue, 0)
		if places > 0 {
			first = command("LRANGE", queue, 0, places-1)
		}
		calls = append(calls, command("PTTL", l.Name), command("LLEN", queue), first,
			command("HGET", l.Name, protocol.ModeField), tokenCall(l.Name))
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
			s.places += len(l.Places)
		}
	}
	return still, nil
}

// take sets the details from the replies, and reports whether the lock still exists.
func (l *Lock) take(replies []any) bool {
	left, isNumber := replies[0].(int64)
	l.Queue, l.Next = number(replies[1]), text(replies[2])
	if places, err := redis.Strings(replies[2], nil); err == nil && len(places) > 0 {
		l.Next, l.Places = places[0], places
	}
	switch {
	case isNumber && left >= 0:
		l.TTL = limits.FromMillis(left)
	case left == -2:
		l.Holders, l.More, l.TTL = nil, false, 0
	default:
		l.TTL = redlatch.NoTTL
	}
	switch {
	case l.Queue > 0 && l.Kind != ReadWrite:
		l.Kind = Fair
	case len(l.Holders) == 0:
		return false
	}
	l.Token = tokenOf(replies[4])
	l.Kind = l.Kind.WithToken(l.Token)
	if l.Kind == ReadWrite && l.Mode == "" {
		l.Mode = text(replies[3])
	}
	return l.Kind != ReadWrite || isMode(l.Mode)
}

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

// countWaiters leaves all counts 0 on an error. The next command reports a broken connection.
func (s *scan) countWaiters(ctx context.Context, locks []*Lock) {
	var channels []string
	for _, l := range locks {
		channels = append(channels, codec.LockChannel(l.Name), protocol.ReadWriteChannel(l.Name))
	}
	counts, err := connect.Listening(ctx, s.Labels, channels...)
	if err != nil {
		s.unread.Uncounted = err
		return
	}
	for i, l := range locks {
		l.Waiting, l.PlainWaiters, l.ReadWriteWaiters = WaitersOf(l.Kind, len(l.Holders) > 0, l.Queue > 0, [2]int64(counts[2*i:]))
	}
}

// WaitersOf returns the number of connections that wait for a lock without a queue, and how many other connections
// use its name for a plain or a read/write lock although the lock is of another kind. listening contains the
// subscriber counts of the plain and the read/write channel.
func WaitersOf(kind Kind, held, queued bool, listening [2]int64) (own, plain, readWrite int64) {
	switch {
	case kind == ReadWrite:
		own, plain = listening[1], listening[0]
	case queued:
		plain = listening[0]
	case held:
		own = listening[0]
	}
	if held && kind != ReadWrite {
		readWrite = listening[1]
	}
	return own, plain, readWrite
}

func tokenCall(name string) call { return command("GETRANGE", protocol.TokenKey(name), 0, 19) }

func tokenOf(reply any) int64 {
	token, err := strconv.ParseInt(text(reply), 10, 64)
	if err != nil {
		return 0
	}
	return token
}

// Token returns the last token of a lock, or 0 if it is unknown. An error means a broken
// connection.
func Token(c redis.Conn, name string) (int64, error) {
	replies, err := ask(c, []call{tokenCall(name)})
	if err != nil {
		return 0, err
	}
	return tokenOf(replies[0]), nil
}

type call struct {
	name string
	args []any
}

func command(name string, args ...any) call { return call{name, args} }

// ask sends calls in one batch. A reply may be a redis.Error, or another error if a node of a cluster did not reply.
// The returned error means a broken connection.
func ask(c redis.Conn, calls []call) ([]any, error) {
	for _, call := range calls {
		if err := c.Send(call.name, call.args...); err != nil {
			return nil, err
		}
	}
	if err := c.Flush(); err != nil {
		return nil, err
	}
	replies := make([]any, len(calls))
	for i := range calls {
		reply, err := c.Receive()
		var refused redis.Error
		switch {
		case errors.As(err, &refused):
			reply = refused
		case err != nil && c.Err() == nil:
			reply = err
		case err != nil:
			return nil, err
		}
		replies[i] = reply
	}
	return replies, nil
}

// refusal returns the reason why the server did not read a key. WRONGTYPE is not a refusal.
func refusal(reply any) (redis.Error, bool) {
	refused, is := reply.(redis.Error)
	return refused, is && !strings.HasPrefix(string(refused), "WRONGTYPE")
}

func unanswered(reply any) error {
	if _, refused := reply.(redis.Error); refused {
		return nil
	}
	err, _ := reply.(error)
	return err
}

func text(reply any) string {
	s, err := redis.String(reply, nil)
	if err != nil {
		return ""
	}
	return s
}

func number(reply any) int64 {
	n, isNumber := reply.(int64)
	if !isNumber {
		return 0
	}
	return n
}

// Labels returns the known labels of the owners' clients, by owner.
func Labels(c redis.Conn, owners []string) (map[string]string, error) {
	byKey := map[string][]string{}
	var calls []call
	for _, text := range owners {
		bare, _ := protocol.WriterOf(text)
		owner, err := codec.ParseOwner(bare)
		if err != nil {
			continue
		}
		key := engine.LabelKey(owner.Client())
		if byKey[key] == nil {
			calls = append(calls, command("GETRANGE", key, 0, engine.MaxLabel-1))
		}
		byKey[key] = append(byKey[key], text)
	}
	replies, err := ask(c, calls)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{}
	for i, reply := range replies {
		key, isText := calls[i].args[0].(string)
		said := text(reply)
		if !isText || said == "" {
			continue
		}
		for _, owner := range byKey[key] {
			labels[owner] = said
		}
	}
	return labels, nil
}
