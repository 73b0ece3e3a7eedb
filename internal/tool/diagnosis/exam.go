package diagnosis

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// probeLease is for how long a lock of ours stays if we are killed.
const probeLease = 10 * time.Second

// examination is the examination of one server, which may be a master of a cluster.
type examination struct {
	ctx     context.Context   //nolint:containedctx // that of the whole examination, which checks share
	srv     *connect.Server   // nil for Look
	place   string            // what the server is called beside others
	problem func(error) error // makes an error of the server's one for people
	looks   bool              // it is Look: nothing may be changed
	c       redis.Conn
	client  *redlatch.Client
	prefix  string
	needs   []string           // that are asked about, nil for all
	name    string             // of a lock of our own
	info    map[string]string  // nil when it could not be read
	noInfo  string             // why not
	tries   map[string]verdict // of words of ACL SETUSER
	masters int                // of the cluster that was named, 0 for one server
	full    bool               // a lock was refused for lack of memory

	elsewhere  bool // other masters serve all names with the prefix
	scriptless bool // scripts do not run
	mute       bool // scripts cannot publish
}

// check is one check, and what it is called.
type check struct {
	name string
	make func(*examination) Finding
	of   []string // the needs that it is about, nil for all
	once bool     // it is about the cluster, and not about each of its masters
	// cluster is true for a check that is made for masters of a cluster only.
	cluster bool
	look    bool // it changes nothing, and sends nothing that could: it is made by Look, too
	// keyed is true for a check that runs scripts on the name: it leaves out masters that do not serve it.
	keyed bool
}

// checks returns the checks to be made, in the order of the output.
func (e *examination) checks() []check {
	all := []check{
		{name: "server", look: true, make: (*examination).server},
		{name: "slots", look: true, make: (*examination).slots, cluster: true},
		{name: "scripts", keyed: true, make: (*examination).scripts},
		{name: "script keys", keyed: true, make: (*examination).scriptKeys, of: []string{acl.ReadWrite}},
		{name: "script messages", keyed: true, make: (*examination).scriptMessages, of: []string{acl.Plain}},
		{name: "lock", make: (*examination).lock, of: []string{acl.Plain}, once: true},
		{name: "fair lock", make: (*examination).fairLock, of: []string{acl.Fair}, once: true},
		{name: "pub/sub", make: (*examination).messages, of: []string{acl.Plain}},
		{name: "sharded", look: true, make: (*examination).sharded, of: []string{acl.Plain}},
	}
	for i := range questions {
		if q := &questions[i]; e.asks(q) {
			all = append(all, check{name: q.check, make: func(e *examination) Finding { return e.rights(q) }})
		}
	}
	all = append(all, []check{
		{name: "counting", look: true, make: (*examination).counting, of: []string{acl.Listeners, acl.Operator, acl.Onlooker}, once: true},
		{name: "eviction", look: true, make: (*examination).eviction},
		{name: "persistence", look: true, make: (*examination).persistence},
		{name: "replicas", look: true, make: (*examination).replicas},
		{name: "keepalive", look: true, make: (*examination).keepalive},
		{name: "clock", look: true, make: (*examination).clock},
		{name: "latency", look: true, keyed: true, make: (*examination).latency},
	}...)
	return slices.DeleteFunc(all, func(c check) bool {
		return e.looks && !c.look || c.of != nil && !e.has(c.of...) || c.cluster && e.masters == 0
	})
}

// Examination is what is to be examined.
type Examination struct {
	// Server is the server, as a user of it; of a deployment all masters are examined.
	Server *connect.Server
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
	masters, err := x.Server.Masters(ctx)
	if err != nil {
		return nil, err
	}
	client, err := x.Server.New(ctx, redlatch.WithServerTime())
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }() // it holds nothing any more
	var exams []*examination
	var away []error
	for _, srv := range masters {
		c, err := reach(ctx, srv)
		if err != nil {
			away = append(away, err)
			continue
		}
		defer func() { _ = c.Close() }() // nothing is buffered
		e := newExam(ctx, srv, c, x.Prefix)
		if x.Server.IsCluster() {
			e.masters = len(masters)
		}
		e.client, e.needs = client, needed(x.Needs)
		e.read()
		defer e.remove()
		exams = append(exams, e)
	}
	return findingsOf(exams, away)
}

// reach connects to a server that answers.
func reach(ctx context.Context, srv *connect.Server) (redis.Conn, error) {
	c, err := srv.Dial(ctx)
	if err != nil {
		return nil, err
	}
	if err := answers(c); err != nil {
		_ = c.Close() // the first error tells more
		return nil, srv.Problem(err)
	}
	return c, nil
}

// findingsOf makes the checks. Away is why other masters cannot be examined.
func findingsOf(exams []*examination, away []error) (findings []Finding, err error) {
	if len(exams) == 0 {
		return nil, away[0]
	}
	for _, err := range away {
		findings = append(findings, Finding{Check: "master", Level: Error, Found: err.Error()})
	}
	for _, check := range exams[0].checks() {
		f, err := check.at(exams)
		if err != nil {
			return nil, err
		}
		findings = append(findings, f)
	}
	return findings, nil
}

// answers returns the server's error when it answers no command at all, so that no check
// would find out anything, and also when it has closed the connection after its error. That this user
// may not send PING is left to the checks.
func answers(c redis.Conn) error {
	_, err := c.Do("PING")
	var said redis.Error
	if !errors.As(err, &said) {
		return err
	}
	switch before(said.Error(), " ") {
	case "NOAUTH", "LOADING", "BUSY":
		return err
	}
	if _, _ = c.Do("PING"); c.Err() != nil {
		return err
	}
	return nil
}

// at makes the check, at each master unless once will do, and returns the worst finding.
func (c *check) at(exams []*examination) (Finding, error) {
	if c.once {
		exams = exams[:1]
	}
	isElsewhere := func(e *examination) bool { return e.elsewhere }
	if served := slices.DeleteFunc(slices.Clone(exams), isElsewhere); c.keyed && len(served) > 0 {
		exams = served
	}
	var worst Finding
	var at *examination
	alike := true
	for _, e := range exams {
		f := c.make(e)
		if err := errors.Join(e.ctx.Err(), e.c.Err()); err != nil {
			return f, e.problem(err)
		}
		alike = alike && (at == nil || f == worst)
		if at == nil || f.Level > worst.Level {
			worst, at = f, e
		}
	}
	if !alike {
		worst.Found = at.place + ": " + worst.Found
	}
	worst.Check = c.name
	return worst, nil
}

func newExam(ctx context.Context, srv *connect.Server, c redis.Conn, prefix string) *examination {
	e := &examination{
		ctx: ctx, srv: srv, place: srv.Place(), problem: srv.Problem, c: c, prefix: prefix, tries: map[string]verdict{},
	}
	e.placeName()
	return e
}

// read reads what the server tells of itself.
func (e *examination) read() {
	text, err := redis.String(e.c.Do("INFO"))
	switch {
	case denied(err) == deniedCommand:
		e.noInfo = "unknown: INFO is not permitted (+info)"
		return
	case err != nil:
		e.noInfo = "unknown: INFO fails: " + shortError(err)
		return
	}
	e.info = map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			e.info[key] = value
		}
	}
}

// remove removes what checks may have left. Where the user may not, nothing was left
// without a time to live.
func (e *examination) remove() {
	_, _ = e.c.Do("DEL", e.name)
	_, _ = e.c.Do("DEL", codec.QueueKey(e.name))
}

// config returns a setting of the server's, and whether it may be read.
func (e *examination) config(name string) (string, bool) {
	pair, err := redis.Strings(e.c.Do("CONFIG", "GET", name))
	if err != nil || len(pair) != 2 {
		return "", false
	}
	return pair[1], true
}

// shortError returns an error in few words.
func shortError(err error) string {
	return strings.TrimRight(connect.ReasonAt(err), ".")
}

// lock takes and frees a plain lock.
func (e *examination) lock() Finding {
	if e.isReplica() {
		return bad("Without this nothing works: see server above.", "not tried: %s", onReplica)
	}
	took, err := e.pair(rlock.New(e.client, e.name))
	if err != nil {
		e.full = isOOM(err)
		return bad(andThen("Without this nothing works", e.seeAlso(err)), "a lock cannot be taken and freed: %s", shortError(err))
	}
	return good("taken and freed in %s", took)
}

// onReplica is why a check is not made.
const onReplica = "this is a replica, to which nothing can be written"

func (e *examination) isReplica() bool { return e.info["role"] == "slave" }

func isOOM(err error) bool { return before(connect.Reason(err), " ") == "OOM" }

// seeAlso names the finding that says more about an error of the server, or says what to do, as far as
// that is known.
func (e *examination) seeAlso(err error) string {
	switch before(connect.Reason(err), " ") {
	case "OOM":
		return "see eviction below."
	case "READONLY":
		return "see server above."
	case "MISCONF":
		return "see persistence below."
	case "NOREPLICAS":
		return "see replicas below."
	case "CLUSTERDOWN", "TRYAGAIN":
		return "see slots above."
	}
	switch {
	case e.scriptless && !connect.Denied(err):
		return "see scripts above."
	case e.mute:
		return "see script messages above."
	case connect.Denied(err):
		return "see the rights below."
	}
	return connect.Remedy(err)
}

// andThen adds what to look at, or to do, if that is known.
func andThen(what, next string) string {
	if next == "" {
		return what + "."
	}
	return what + ": " + next
}

// fairLock takes and frees a fair lock.
func (e *examination) fairLock() Finding {
	f := e.tryFair()
	if f.Level != OK {
		f.Level = e.lacking(acl.Fair)
	}
	return f
}

// tryFair may succeed where the memory is full: the server lets a script go on that has written
// before it needs memory. Waiters find no place then.
func (e *examination) tryFair() Finding {
	if e.isReplica() {
		return warning("See server above.", "not tried: %s", onReplica)
	}
	took, err := e.pair(rfairlock.New(e.client, e.name))
	switch {
	case err != nil && isOOM(err):
		return warning("See eviction below.", "a fair lock cannot be taken and freed: %s", shortError(err))
	case err != nil:
		return warning(andThen("Plain locks work without it", e.seeAlso(err)), "a fair lock cannot be taken and freed: %s", shortError(err))
	case e.full:
		return warning("See eviction below.", "a free one was taken and freed, but the memory is full: no owner finds a place in a queue")
	}
	return good("taken and freed in %s", took)
}

// pair takes and frees a lock, and returns how long that took.
func (e *examination) pair(lock *rlock.Lock) (time.Duration, error) {
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
