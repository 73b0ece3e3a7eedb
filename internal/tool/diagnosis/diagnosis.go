// Package diagnosis checks whether a server supports what locks need. The checks try operations
// instead of relying on version numbers: they acquire and release a lock, send a message, and send
// each command in a form that does not change anything. The keys that a run creates begin with the
// given prefix, have a TTL, and are removed at the end.
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

// The levels, from good to bad.
const (
	// OK needs no action.
	OK Level = iota
	// Unknown could not be determined.
	Unknown
	// Warning may cause trouble later.
	Warning
	// Error keeps locks from working.
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
	// Advice is what to do, Command what to send to the server.
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

// probeLease ends the tried lock if the process is killed.
const probeLease = 10 * time.Second

type examination struct {
	ctx     context.Context //nolint:containedctx // that of the whole examination, which checks share
	on      connect.Node
	looks   bool // Look: nothing may be changed
	c       redis.Conn
	client  *redlatch.Client
	prefix  string
	needs   []string // nil for all
	name    string
	info    map[string]string  // of INFO, nil if it could not be read
	noInfo  string             // why it could not be read
	tries   map[string]verdict // by word of ACL SETUSER
	masters int                // of the cluster, 0 for one server
	full    bool               // a lock was refused for lack of memory

	elsewhere  bool // other masters serve all names with the prefix
	scriptless bool // scripts do not run
	mute       bool // scripts cannot publish
}

type check struct {
	name    string
	make    func(*examination) Finding
	of      []string // the needs it is about, nil for all
	once    bool     // about the cluster, not each master
	cluster bool
	look    bool // changes nothing: also made by Look
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
	// Server is examined as its user. All masters of a deployment are examined.
	Server *connect.Server
	Prefix string
	// Needs lists IDs from Needs. Plain locks are included if one of the needs depends on them. nil
	// means the usual needs, in which case only plain locks cause errors.
	Needs []string
}

// Examine examines a server. An error means that the server was not reached, or the connection was
// lost.
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

// Look runs only those of Examine's checks that neither change nor try anything, so that even a
// user with few permissions gets findings about the server. An error means that the connections
// were lost.
func Look(ctx context.Context, masters []connect.Node, client *redlatch.Client, cluster bool) ([]Finding, error) {
	return findings(ctx, masters, client, cluster, nil)
}

// NotLooked returns the Examine checks that Look omits.
func NotLooked() (names []string) {
	for _, c := range (&examination{}).checks() {
		if !c.look {
			names = append(names, c.name)
		}
	}
	return slices.Compact(names)
}

// findings is for Look if prepare is nil.
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

// answers returns the server's error if it answers no command, or closes the connection after an
// error. A user without the right to PING is left to the checks.
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
		e.noInfo = "unknown: INFO is not permitted (+info)"
		return
	case err != nil:
		e.noInfo = "unknown: INFO fails: " + shortError(err)
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

// remove deletes the keys of checks, if the user may.
func (e *examination) remove() {
	_, _ = e.c.Do("DEL", e.name)
	_, _ = e.c.Do("DEL", codec.QueueKey(e.name))
}

// config also returns whether the setting may be read.
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
