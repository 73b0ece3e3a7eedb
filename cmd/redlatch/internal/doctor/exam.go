package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/conn"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/rights"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// probeLease is for how long a lock of ours stays if we are killed.
const probeLease = 10 * time.Second

// exam is one examination.
type exam struct {
	ctx    context.Context //nolint:containedctx // that of the whole examination, which checks share
	srv    *conn.Server
	c      redis.Conn
	client *redlatch.Client
	prefix string
	needs  []string           // that are asked about, nil for all
	name   string             // of a lock of our own
	info   map[string]string  // nil when it may not be read
	tries  map[string]verdict // of words of ACL SETUSER
}

// check is one check, and what it is called.
type check struct {
	name string
	make func(*exam) Finding
	of   []string // the needs that it is about, nil for all
}

// checks returns those to be made, in the order in which they are told.
func (e *exam) checks() []check {
	all := []check{
		{"server", (*exam).server, nil},
		{"scripts", (*exam).scripts, nil},
		{"lock", (*exam).lock, []string{rights.Plain}},
		{"fair lock", (*exam).fairLock, []string{rights.Fair}},
		{"pub/sub", (*exam).messages, []string{rights.Plain}},
		{"sharded", (*exam).sharded, []string{rights.Plain}},
	}
	for i := range questions {
		if q := &questions[i]; e.asks(q) {
			all = append(all, check{q.check, func(e *exam) Finding { return e.rights(q) }, nil})
		}
	}
	all = append(all, []check{
		{"counting", (*exam).counting, []string{rights.Listeners, rights.Operator, rights.Onlooker}},
		{"eviction", (*exam).eviction, nil},
		{"persistence", (*exam).persistence, nil},
		{"replicas", (*exam).replicas, nil},
		{"keepalive", (*exam).keepalive, nil},
		{"clock", (*exam).clock, nil},
		{"latency", (*exam).latency, nil},
	}...)
	return slices.DeleteFunc(all, func(c check) bool { return c.of != nil && !e.has(c.of...) })
}

// Examination is what is to be examined.
type Examination struct {
	// Server is the server, as a user of it.
	Server *conn.Server
	// Prefix is what the names of the locks begin with.
	Prefix string
	// Needs are the IDs of what the user needs for sure, see Needs; what stands on plain
	// locks brings these along. nil asks about all that users need: only what plain locks
	// lack is an error then.
	Needs []string
}

// Examine examines a server. An error says that it could not be reached, or was lost
// on the way; all else is a finding.
func Examine(ctx context.Context, x Examination) ([]Finding, error) {
	srv := x.Server
	c, err := srv.Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }() // nothing is buffered
	client, err := srv.New(redlatch.WithServerTime())
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }() // it holds nothing any more
	e := newExam(ctx, srv, c, x.Prefix)
	e.client, e.needs = client, needed(x.Needs)
	e.read()
	defer e.remove()
	var findings []Finding
	for _, check := range e.checks() {
		f := check.make(e)
		f.Check = check.name
		findings = append(findings, f)
		if err := errors.Join(ctx.Err(), c.Err()); err != nil {
			return nil, srv.Problem(err)
		}
	}
	return findings, nil
}

func newExam(ctx context.Context, srv *conn.Server, c redis.Conn, prefix string) *exam {
	return &exam{
		ctx: ctx, srv: srv, c: c, prefix: prefix, name: prefix + "redlatch-doctor:" + uuid.NewString()[:8],
		tries: map[string]verdict{},
	}
}

// read reads what the server tells of itself.
func (e *exam) read() {
	text, err := redis.String(e.c.Do("INFO"))
	if err != nil {
		return
	}
	e.info = map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			e.info[key] = value
		}
	}
}

// remove removes what checks may have left. A user who may not has left nothing that
// has no time to live.
func (e *exam) remove() {
	_, _ = e.c.Do("DEL", e.name)
	_, _ = e.c.Do("DEL", codec.QueueKey(e.name))
}

// config returns a setting of the server's, and whether it may be read.
func (e *exam) config(name string) (string, bool) {
	pair, err := redis.Strings(e.c.Do("CONFIG", "GET", name))
	if err != nil || len(pair) != 2 {
		return "", false
	}
	return pair[1], true
}

// said returns what went wrong, in few words.
func said(err error) string {
	return strings.TrimRight(conn.Reason(err), ".")
}

// lock takes and frees a plain lock.
func (e *exam) lock() Finding {
	took, err := e.pair(rlock.New(e.client, e.name))
	if err != nil {
		return bad("Without this nothing works: see the rights below.", "a lock cannot be taken and freed: %s", said(err))
	}
	return good("taken and freed in %s", took)
}

// fairLock takes and frees a fair lock.
func (e *exam) fairLock() Finding {
	took, err := e.pair(rfairlock.New(e.client, e.name))
	if err != nil {
		f := warning("Plain locks work without it: see the rights below.", "a fair lock cannot be taken and freed: %s", said(err))
		f.Level = e.lacking(rights.Fair)
		return f
	}
	return good("taken and freed in %s", took)
}

// pair takes and frees a lock, and returns how long that took.
func (e *exam) pair(lock *rlock.Lock) (time.Duration, error) {
	began := time.Now()
	hold, err := lock.TryLock(e.ctx, rlock.WithLease(probeLease))
	if err != nil {
		return 0, err
	}
	if err := hold.Unlock(); err != nil {
		return 0, err
	}
	return time.Since(began).Round(10 * time.Microsecond), nil
}
