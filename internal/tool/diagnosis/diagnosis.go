// Package diagnosis checks whether a server supports what locks need. Instead of relying on version
// numbers, the checks acquire and release a lock, publish a message, and send each command in a
// form that does not change anything. Keys created by a run begin with the given prefix, have a
// TTL, and are deleted at the end.
package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

// Level is the severity of a finding.
type Level int

const (
	// OK means that no action is needed.
	OK Level = iota
	// Unknown means that the check was inconclusive.
	Unknown
	// Warning means that trouble is possible later.
	Warning
	// Error means that locks do not work.
	Error
)

// String returns the level as a word.
func (l Level) String() string { return [...]string{"ok", "unknown", "warning", "error"}[l] }

// MarshalText implements encoding.TextMarshaler.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Finding is the result of a check.
type Finding struct {
	Check string `json:"check"`
	Level Level  `json:"level"`
	Found string `json:"found"`
	// Advice and Command explain how to fix it.
	Advice  string `json:"advice,omitempty"`
	Command string `json:"command,omitempty"`
}

// Worst returns the worst level, or OK if there are no findings.
func Worst(findings []Finding) Level {
	worst := OK
	for i := range findings {
		worst = max(worst, findings[i].Level)
	}
	return worst
}

func good(format string, args ...any) Finding {
	return Finding{Level: OK, Found: fmt.Sprintf(format, args...)}
}

func unknown(format string, args ...any) Finding {
	return Finding{Level: Unknown, Found: fmt.Sprintf(format, args...)}
}

func warning(advice, format string, args ...any) Finding {
	return Finding{Level: Warning, Advice: advice, Found: fmt.Sprintf(format, args...)}
}

func bad(advice, format string, args ...any) Finding {
	return Finding{Level: Error, Advice: advice, Found: fmt.Sprintf(format, args...)}
}

const probeLease = 10 * time.Second

type examination struct {
	ctx     context.Context //nolint:containedctx // shared by all checks
	on      connect.Node
	looks   bool // set by Look: do not change anything
	c       redis.Conn
	client  *redlatch.Client
	prefix  string
	needs   []string // IDs from package acl; nil means all
	name    string
	info    map[string]string  // from INFO; nil if INFO failed
	noInfo  string             // why info is nil
	tries   map[string]verdict // results so far, by ACL SETUSER rule
	masters int                // in the cluster; 0 for a single server
	full    bool               // memory is full, so the server refused a lock

	elsewhere  bool // other masters serve all names with the prefix
	scriptless bool // scripts do not run
	mute       bool // scripts cannot publish
}

type check struct {
	name    string
	make    func(*examination) Finding
	of      []string // needs that it checks; nil means all
	once    bool     // runs on a single master
	cluster bool
	look    bool // does not change anything; also part of Look
	keyed   bool
	info    bool
}

func (e *examination) checks() []check {
	all := []check{
		{name: "server", look: true, info: true, make: (*examination).server},
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
			all = append(all, check{name: q.check(), make: func(e *examination) Finding { return e.rights(q) }})
		}
	}
	all = append(all, []check{
		{name: "counting", look: true, make: (*examination).counting, of: []string{acl.Listeners, acl.Operator, acl.Onlooker}, once: true},
		{name: "eviction", look: true, info: true, make: (*examination).eviction},
		{name: "persistence", look: true, info: true, make: (*examination).persistence},
		{name: "replicas", look: true, info: true, make: (*examination).replicas},
		{name: "keepalive", look: true, make: (*examination).keepalive},
		{name: "clock", look: true, make: (*examination).clock},
		{name: "latency", look: true, keyed: true, make: (*examination).latency},
	}...)
	return slices.DeleteFunc(all, func(c check) bool {
		return e.looks && !c.look || c.of != nil && !e.has(c.of...) || c.cluster && e.masters == 0
	})
}

// Examination configures Examine.
type Examination struct {
	// In a deployment, all masters are examined.
	Server *connect.Server
	Prefix string
	// Needs lists IDs from the Needs function. If any of them depends on plain locks, plain locks
	// are added. Nil means the usual needs, of which only plain locks cause errors.
	Needs []string
}

// Examine examines a server. It fails if the server cannot be reached or the connection is lost.
func Examine(ctx context.Context, x Examination) ([]Finding, error) {
	client, err := x.Server.New(ctx, redlatch.WithServerTime())
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	masters, err := x.Server.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	return findings(ctx, masters, client, x.Server.IsCluster(), func(e *examination) {
		e.prefix, e.needs, e.tries = x.Prefix, needed(x.Needs), map[string]verdict{}
		e.placeName()
	})
}

// Look runs only the checks of Examine that do not change or try anything, so that a user with few permissions also
// gets findings. It fails if all connections are lost.
func Look(ctx context.Context, masters []connect.Node, client *redlatch.Client, cluster bool) ([]Finding, error) {
	return findings(ctx, masters, client, cluster, nil)
}

// NotLooked returns the names of the checks that Look omits.
func NotLooked() (names []string) {
	for _, c := range (&examination{}).checks() {
		if !c.look {
			names = append(names, c.name)
		}
	}
	return slices.Compact(names)
}

// If prepare is nil, findings runs only the checks of Look.
func findings(
	ctx context.Context, masters []connect.Node, client *redlatch.Client, cluster bool, prepare func(*examination),
) (found []Finding, err error) {
	var exams []*examination
	var away []error
	for _, m := range masters {
		c, err := m.Dial(ctx)
		if err != nil {
			away = append(away, err)
			continue
		}
		stop := context.AfterFunc(ctx, func() { _ = c.Close() }) // ends commands
		defer func() {
			stop()
			_ = c.Close() // nothing is buffered
		}()
		if err := answers(c); err != nil {
			away = append(away, m.Problem(err))
			continue
		}
		e := &examination{ctx: ctx, on: m, looks: prepare == nil, c: c, client: client, name: "redlatch-doctor"}
		if cluster {
			e.masters = len(masters)
		}
		if prepare != nil {
			prepare(e)
			defer e.remove()
		}
		e.read()
		exams = append(exams, e)
	}
	if len(exams) == 0 {
		return nil, away[0]
	}
	for _, err := range away {
		found = append(found, Finding{Check: "master", Level: Error, Found: err.Error()})
	}
	for _, check := range exams[0].checks() {
		f, err := check.at(exams)
		if err != nil {
			return nil, err
		}
		found = append(found, f)
	}
	return found, nil
}

// answers returns the server's error if it rejects all commands or closes the connection after an error.
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
		f := unknown("%s", e.noInfo)
		if !c.info || e.info != nil {
			f = c.make(e)
		}
		if err := errors.Join(e.ctx.Err(), e.c.Err()); err != nil {
			return f, e.on.Problem(err)
		}
		alike = alike && (at == nil || f == worst)
		if at == nil || f.Level > worst.Level {
			worst, at = f, e
		}
	}
	if !alike {
		worst.Found = at.on.Name + ": " + worst.Found
	}
	worst.Check = c.name
	return worst, nil
}

func (e *examination) read() {
	text, err := redis.String(e.c.Do("INFO"))
	switch {
	case denied(err) == deniedCommand:
		e.noInfo = "INFO is not permitted (+info)"
		return
	case err != nil:
		e.noInfo = "INFO fails: " + shortError(err)
		return
	}
	e.info = fields(text)
}

func fields(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			all[key] = value
		}
	}
	return all
}

func (e *examination) remove() {
	_, _ = e.c.Do("DEL", e.name)
	_, _ = e.c.Do("DEL", codec.QueueKey(e.name))
}

func (e *examination) config(name string) (string, bool) {
	pair, err := redis.Strings(e.c.Do("CONFIG", "GET", name))
	if err != nil || len(pair) != 2 {
		return "", false
	}
	return pair[1], true
}

func shortError(err error) string {
	return strings.TrimRight(connect.ReasonAt(err), ".")
}
