package doctor

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/conn"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
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
	name   string            // of a lock of our own
	info   map[string]string // nil when it may not be read
}

// check is one check, and what it is called.
type check struct {
	name string
	make func(*exam) Finding
}

// checks are all of them, in the order in which they are told.
var checks = []check{
	{"server", (*exam).server},
	{"scripts", (*exam).scripts},
	{"lock", (*exam).lock},
	{"fair lock", (*exam).fairLock},
	{"pub/sub", (*exam).messages},
	{"sharded", (*exam).sharded},
	{"rights", (*exam).plainRights},
	{"fair rights", (*exam).fairRights},
	{"more rights", (*exam).moreRights},
	{"counting", (*exam).counting},
	{"eviction", (*exam).eviction},
	{"persistence", (*exam).persistence},
	{"replicas", (*exam).replicas},
	{"keepalive", (*exam).keepalive},
	{"clock", (*exam).clock},
	{"latency", (*exam).latency},
}

// Examine examines a server, for locks whose names begin with prefix. An error says
// that it could not be reached, or was lost on the way; all else is a finding.
func Examine(ctx context.Context, srv *conn.Server, prefix string) ([]Finding, error) {
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
	e := &exam{ctx: ctx, srv: srv, c: c, client: client, prefix: prefix, name: prefix + "redlatch-doctor:" + uuid.NewString()[:8]}
	e.read()
	defer e.remove()
	var findings []Finding
	for _, check := range checks {
		f := check.make(e)
		f.Check = check.name
		findings = append(findings, f)
		if err := errors.Join(ctx.Err(), c.Err()); err != nil {
			return nil, srv.Problem(err)
		}
	}
	return findings, nil
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

// said returns what went wrong, in few words: those of the server, if it has any.
func said(err error) string {
	var refusal *transport.ServerError
	if errors.As(err, &refusal) {
		return strings.TrimRight(refusal.Text, ".")
	}
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
		return warning("Plain locks work without it: see the rights below.", "a fair lock cannot be taken and freed: %s", said(err))
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
