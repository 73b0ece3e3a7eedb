package schedules

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/transport"
)

// server implements the scripts of the locks in Go. It implements their replies and messages, but not their handling of
// damaged keys.
type server struct {
	limit    time.Duration // maximum time for which a lock with waiters may be free
	networks []*network    // of its clients

	mu      sync.Mutex // guards the fields below
	locks   map[string]*lock
	waiting map[*wait]bool
	late    []string // waits that exceeded limit
}

// lock is a lock of any kind, or the permits of a semaphore.
type lock struct {
	owners  map[string]*held
	queue   []string // of a fair lock
	permits int64
	changed time.Time // when the owners or permits changed
}

type held struct {
	count int64
	until time.Time
}

// wait is a caller that waits for a lock, or for n permits.
type wait struct {
	key   string
	n     int64
	began time.Time
	leave func() // cancels the wait
}

func newServer(limit time.Duration) *server {
	return &server{limit: limit, locks: map[string]*lock{}, waiting: map[*wait]bool{}}
}

// lock returns a lock after it has removed expired owners. It must be called with mu held.
func (s *server) lock(key string) *lock {
	l := s.locks[key]
	if l == nil {
		l = &lock{owners: map[string]*held{}}
		s.locks[key] = l
	}
	for owner, h := range l.owners {
		if !h.until.After(time.Now()) {
			delete(l.owners, owner)
			l.changed = h.until
		}
	}
	return l
}

// waits records that a caller is waiting until over is called. leave cancels the wait.
func (s *server) waits(key string, n int64, leave func()) (over func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &wait{key, n, time.Now(), leave}
	s.waiting[w] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lock(key)
		s.changes(key, 0)
		delete(s.waiting, w)
	}
}

// changes checks for how long a lock was free before n permits are acquired. It must be called with mu held.
func (s *server) changes(key string, n int64) {
	l, now := s.locks[key], time.Now()
	for w := range s.waiting {
		idle := min(now.Sub(w.began), now.Sub(l.changed))
		if w.key == key && len(l.owners) == 0 && w.n <= l.permits && idle > s.limit {
			s.late = append(s.late, idle.String())
		}
	}
	if l.permits += n; n != 0 {
		l.changed = now
	}
}

// cancel cancels the wait of a caller.
func (s *server) cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.waiting {
		w.leave()
		return
	}
}

// left returns the remaining time for which an owner holds a lock.
func (s *server) left(key, owner string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var until time.Time
	l := s.lock(key)
	for _, owner := range []string{owner, owner + ":write"} {
		if h := l.owners[owner]; h != nil && h.until.After(until) {
			until = h.until
		}
	}
	return time.Until(until)
}

// run executes a call.
func (s *server) run(c *transport.Call) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Script == nil { // TIME
		now := time.Now()
		return []any{strconv.FormatInt(now.Unix(), 10), strconv.Itoa(now.Nanosecond() / 1000)}
	}
	keys, args := c.Args[:c.NumKeys], c.Args[c.NumKeys:]
	name, fair := strings.CutPrefix(c.Name(), "fair_")
	if fair {
		args = args[1:] // the time
	}
	if strings.HasSuffix(name, "renew") {
		return s.renew(keys, args)
	}
	key, _ := keys[0].(string)
	l := s.lock(key)
	switch name {
	case "heartbeat":
		return s.heartbeat(l, args)
	case "give_up":
		l.giveUp(args)
		if len(l.owners) == 0 {
			s.wake(l, keys)
		}
		return nil
	case "semaphore_acquire":
		n, _ := args[0].(int64)
		if l.permits < n {
			return []any{int64(-1), l.permits}
		}
		s.changes(key, -n)
		return l.permits
	case "semaphore_add":
		n, _ := args[0].(int64)
		s.changes(key, n)
		s.publish(keys[1])
		return l.permits
	}
	if name == "acquire" || name == "try" || strings.HasSuffix(name, "_acquire") {
		return s.acquire(name, fair, key, args)
	}
	return s.change(name, fair, keys, args)
}

func text(v any) string {
	text, _ := v.(string)
	return text
}

func after(lease any) time.Time {
	ms, _ := lease.(int64)
	return time.Now().Add(time.Duration(ms) * time.Millisecond)
}

// acquire executes the scripts that acquire a lock, or queue an owner for it.
func (s *server) acquire(name string, fair bool, key string, args []any) any {
	l, owner, lease := s.locks[key], text(args[0]), args[1]
	if fair {
		lease = args[2]
	}
	writer := l.writer()
	grants := len(l.owners) == 0 && (len(l.queue) == 0 || l.queue[0] == owner) || l.owners[owner] != nil
	if name == "read_acquire" {
		grants = writer == "" || writer == owner+":write"
	}
	if grants {
		s.changes(key, 0)
		l.changed = time.Now()
		l.queue = slices.DeleteFunc(l.queue, func(other string) bool { return other == owner })
		if l.owners[owner] == nil {
			l.owners[owner] = &held{}
		}
		l.owners[owner].count++
		l.owners[owner].until = after(lease)
		return nil
	}
	left, holder := l.left()
	switch {
	case name == "read_acquire" || name == "write_acquire":
		if writer == "" {
			return left
		}
		return []any{left, writer}
	case !fair || name == "try":
		return []any{left, holder}
	}
	place := int64(0)
	if !slices.Contains(l.queue, owner) {
		l.queue = append(l.queue, owner)
		place = int64(len(l.queue))
	}
	return []any{left, holder, l.queue[0], place}
}

func (l *lock) writer() string {
	for owner := range l.owners {
		if strings.HasSuffix(owner, ":write") {
			return owner
		}
	}
	return ""
}

// left returns the remaining milliseconds of the lock, or -2 if it is free, and one of its owners.
func (l *lock) left() (ms int64, holder string) {
	ms = -2
	for owner, h := range l.owners {
		ms, holder = max(ms, time.Until(h.until).Milliseconds()), owner
	}
	return ms, holder
}

// change executes the scripts that change or end holds.
func (s *server) change(name string, fair bool, keys, args []any) any {
	key, owner := text(keys[0]), text(args[0])
	l := s.locks[key]
	h := l.owners[owner]
	if writer := l.owners[owner+":write"]; h == nil && writer != nil && name == "read_reenter" {
		h = &held{until: writer.until}
		l.owners[owner] = h
	}
	switch {
	case h == nil && fair && strings.Contains(name, "release") && len(l.owners) == 0:
		s.wake(l, keys)
		return int64(2)
	case name == "pass" && h == nil:
		return int64(0)
	case h == nil:
		return nil
	case name == "pass":
		l.owners = map[string]*held{text(args[1]): {1, after(args[2])}}
		return nil
	}
	target, _ := args[2].(int64)
	if strings.HasSuffix(name, "reenter") {
		h.count = max(h.count, target)
		if until := after(args[1]); until.After(h.until) {
			h.until = until
		}
		return int64(1)
	}
	if strings.HasSuffix(name, "release_shared") {
		target = h.count - 1
	}
	if target > 0 {
		if h.count > target {
			h.count, h.until = target, after(args[1])
		}
		return int64(0)
	}
	delete(l.owners, owner)
	l.changed = time.Now()
	switch {
	case fair:
		s.wake(l, keys)
	case len(l.owners) == 0 || name == "write_release":
		s.publish(keys[1])
	}
	return int64(1)
}

func (s *server) renew(keys, args []any) any {
	all := []any{}
	for i := range len(args) / 2 {
		renewed := int64(0)
		if h := s.lock(text(keys[i])).owners[text(args[2*i])]; h != nil {
			if until := after(args[2*i+1]); until.After(h.until) {
				h.until = until
			}
			renewed = 1
		}
		all = append(all, renewed)
	}
	return all
}

func (s *server) heartbeat(l *lock, args []any) any {
	left, _ := l.left()
	front, missing := []any{}, []any{}
	for _, owner := range l.queue {
		front = append(front, owner, strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10))
	}
	n, _ := args[3].(int64)
	for i := range n {
		if owner := args[4+2*i]; !slices.Contains(l.queue, text(owner)) {
			missing = append(missing, owner)
		}
	}
	return []any{left, front, missing, int64(len(l.queue))}
}

// giveUp removes owners from the queue. In the arguments, two other values follow the first owner and its wait.
func (l *lock) giveUp(args []any) {
	l.queue = slices.DeleteFunc(l.queue, func(owner string) bool { return slices.Contains(args, any(owner)) })
}

// wake notifies the first waiter in the queue of a fair lock.
func (s *server) wake(l *lock, keys []any) {
	if len(l.queue) > 0 {
		s.publish(text(keys[3]) + ":" + l.queue[0])
	}
}

// publish sends a message to the subscribers of a channel.
func (s *server) publish(channel any) {
	for _, n := range s.networks {
		n.publish(text(channel))
	}
}
