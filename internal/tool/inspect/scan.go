package inspect

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/transport"
)

const (
	step       = 250
	batch      = 200
	remembered = 1 << 18 // locks; SCAN may repeat keys, but each lock is reported once
)

// Request configures a scan.
type Request struct {
	// Conn must not be used by others during the scan.
	Conn redis.Conn
	// Labels, if not nil, replaces Conn for reading labels and counting subscribers.
	Labels redis.Conn
	// Pattern selects names. "" selects all names.
	Pattern string
	// Permits adds semaphores with taken permits. Numbers scans for numbers instead of locks.
	Permits, Numbers bool
	// Found is called for each lock. If it returns an error, the scan ends.
	Found func(*Lock) error
	// Progress, if not nil, is called with the fraction of keys scanned.
	Progress func(done float64)
	// Looked, if not nil, is called after each step with its number of keys and how long its replies took.
	Looked func(keys int, took time.Duration)
	// Places is how many places of a queue to read: after wholePlaces, at most CirclePlaces; after mostPlaces, one.
	Places   int
	NoLabels bool
}

// Unread describes the failures of a scan.
type Unread struct {
	// Keys counts the keys that the server refused to read. Why is the server's last error.
	Keys int
	Why  error
	// Away is the reason why a master of a cluster was not scanned.
	Away error
	// Uncounted is the reason why waiting connections were not counted.
	Uncounted error
}

// Add adds the failures of another scan.
func (u *Unread) Add(other Unread) {
	u.Keys += other.Keys
	if other.Why != nil {
		u.Why = other.Why
	}
	u.Away = cmp.Or(u.Away, other.Away)
	if other.Uncounted != nil {
		u.Uncounted = other.Uncounted
	}
}

// Text reports how many keys were not read, and why. The argument what is the noun for the keys.
func (u *Unread) Text(what string) string {
	keys, them := fmt.Sprintf("%d %s were", u.Keys, what), "them"
	if u.Keys == 1 {
		keys, them = "1 "+strings.TrimSuffix(what, "s")+" was", "it"
	}
	if connect.Denied(u.Why) {
		return fmt.Sprintf("%s not inspected: this user may not read %s (%v)", keys, them, u.Why)
	}
	return strings.TrimSuffix(fmt.Sprintf("%s not inspected: %s. %s", keys, connect.Reason(u.Why), connect.Remedy(u.Why)), ". ")
}

type scan struct {
	Request
	seed   maphash.Seed
	known  map[uint64]struct{}
	unread Unread
	places int // read so far
	done   float64
	part   float64 // share of each pass in the whole scan
}

type pass struct {
	match, kind string
	// name returns the lock's name in a key, or false to skip the key.
	name func(key string) (string, bool)
	read func(ctx context.Context, names []string) ([]*Lock, error)
}

func (s *scan) passes() []pass {
	matches := Match(s.Pattern)
	held := func(ctx context.Context, names []string) ([]*Lock, error) { return s.read(ctx, names, false) }
	queued := func(ctx context.Context, names []string) ([]*Lock, error) { return s.read(ctx, names, true) }
	numbers := func(ctx context.Context, names []string) ([]*Lock, error) { return s.readNumbers(ctx, names, false) }
	taken := func(ctx context.Context, names []string) ([]*Lock, error) { return s.readNumbers(ctx, names, true) }
	if s.Numbers {
		return []pass{{s.Pattern, "string", func(key string) (string, bool) { return key, !isPart(key) }, numbers}}
	}
	all := []pass{
		{s.Pattern, "hash", func(key string) (string, bool) { return key, true }, held},
		{queuePrefix + "*", "list", func(key string) (string, bool) {
			name := lockOf(key)
			return name, matches(name) && !s.knows(key)
		}, queued},
	}
	if s.Permits {
		all = append(all, pass{"*" + permitsSuffix, "zset", func(key string) (string, bool) {
			name := Unbraced(strings.TrimSuffix(key, permitsSuffix))
			return name, matches(name)
		}, taken})
	}
	return all
}

// Run finds locks. If ctx ends, it stops before the next command.
func Run(ctx context.Context, r Request) (Unread, error) {
	s := &scan{Request: r, seed: maphash.MakeSeed(), known: map[uint64]struct{}{}}
	if s.Pattern == "" {
		s.Pattern = "*"
	}
	if s.Labels == nil {
		s.Labels = s.Conn
	}
	passes := s.passes()
	for i, p := range passes {
		s.done, s.part = float64(i)/float64(len(passes)), 1/float64(len(passes))
		if err := s.pass(ctx, p); err != nil {
			return s.unread, err
		}
	}
	return s.unread, nil
}

func (s *scan) pass(ctx context.Context, p pass) error {
	before, cursor := s.done, "0"
	for {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		began := time.Now()
		reply, err := redis.Values(s.Conn.Do("SCAN", cursor, "MATCH", p.match, "COUNT", step, "TYPE", p.kind))
		if err != nil {
			return err
		}
		if len(reply) != 2 {
			return fmt.Errorf("%w to SCAN: %d parts", transport.ErrBadReply, len(reply))
		}
		cursor = text(reply[0])
		keys, err := redis.Strings(reply[1], nil)
		if err != nil {
			return err
		}
		for some := range slices.Chunk(keys, batch) {
			if err := s.take(ctx, p, some); err != nil {
				return err
			}
		}
		if s.Looked != nil {
			s.Looked(len(keys), time.Since(began))
		}
		s.progress(before, cursor)
		if cursor == "0" {
			return nil
		}
	}
}

func (s *scan) take(ctx context.Context, p pass, keys []string) error {
	var names []string
	for _, key := range keys {
		if name, ok := p.name(key); ok {
			names = append(names, name)
		}
	}
	locks, err := p.read(ctx, names)
	if err != nil {
		return err
	}
	for _, l := range locks {
		// Two spellings of a name may share a queue.
		if !s.remember(l.Name) {
			continue
		}
		if l.Queue > 0 {
			s.remember(l.QueueKey())
		}
		if err := s.Found(l); err != nil {
			return err
		}
	}
	return nil
}

// progress reports the fraction of keys scanned, which is the cursor with its bits reversed.
func (s *scan) progress(before float64, cursor string) {
	part := 1.0
	if n, err := strconv.ParseUint(cursor, 10, 64); err == nil && n != 0 {
		part = float64(bits.Reverse64(n)) / math.Exp2(64)
	}
	s.done = max(s.done, before+part*s.part)
	if s.Progress != nil {
		s.Progress(s.done)
	}
}

func (s *scan) remember(key string) bool {
	if s.knows(key) {
		return false
	}
	if len(s.known) < remembered {
		s.known[maphash.String(s.seed, key)] = struct{}{}
	}
	return true
}

func (s *scan) knows(key string) bool {
	_, known := s.known[maphash.String(s.seed, key)]
	return known
}

func (s *scan) refused(why redis.Error) {
	s.unread.Keys++
	s.unread.Why = why
}

// RunOnMasters calls RunOn for all masters of a server.
func RunOnMasters(ctx context.Context, srv *connect.Server, r Request) (Unread, error) {
	masters, err := srv.Nodes(ctx)
	if err != nil {
		return Unread{}, err
	}
	if !srv.IsCluster() {
		return RunOn(ctx, masters, nil, r)
	}
	return RunOn(ctx, masters, srv.Dial, r)
}

// RunOn scans masters in order, on its own connections. labels connects to all nodes of a cluster,
// in which labels and locks may be on different nodes. It is nil for a single server. If some
// masters fail, Unread contains the reason. If all masters fail, RunOn returns it as an error.
func RunOn(ctx context.Context, masters []connect.Node, labels connect.Dialer, r Request) (unread Unread, err error) {
	if labels != nil {
		if r.Labels, err = labels(ctx); err != nil {
			return unread, err
		}
		defer func() { _ = r.Labels.Close() }()
	}
	progress, away := r.Progress, 0
	for i, master := range masters {
		r.Progress = func(done float64) {
			if progress != nil {
				progress((float64(i) + done) / float64(len(masters)))
			}
		}
		some, err := runOne(ctx, master, r, labels == nil)
		unread.Add(some)
		if err != nil {
			return unread, err
		}
		if some.Away != nil {
			away++
		}
	}
	if away == len(masters) {
		return unread, unread.Away
	}
	return unread, nil
}

func runOne(ctx context.Context, master connect.Node, r Request, whole bool) (unread Unread, err error) {
	var broken error // an error from Found, not from the server
	found := r.Found
	err = connect.Use(ctx, master.Dial, func(c redis.Conn) error {
		if whole && master.Name != "" { // not over a program's own client
			if err := connect.CheckWhole(c, master.Name); err != nil {
				return err
			}
		}
		r.Conn, r.Found = c, func(l *Lock) error {
			broken = found(l)
			return broken
		}
		if unread, err = Run(ctx, r); err == nil || broken != nil || ctx.Err() != nil {
			return err
		}
		return master.Problem(err)
	})
	switch {
	case ctx.Err() != nil:
		return unread, ctx.Err()
	case broken != nil:
		return unread, broken
	}
	unread.Away = err
	return unread, nil
}

// PauseFactor is the minimum ratio of the pause after a look to the duration of the look.
const PauseFactor = 4
