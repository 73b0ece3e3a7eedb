package diagnosis

import (
	"context"
	"slices"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

type question struct {
	id  string // in package acl
	use string // features with this need, in the plural
	// absent is the advice if the server lacks a command.
	advice, absent string
	named          bool // checked only on request
}

var questions = []question{
	{id: acl.Plain, use: "plain locks", advice: "As an administrator, grant the missing rights:", absent: "This user cannot take any lock."},
	{id: acl.Braces, use: "names with their own braces", advice: "Grant it if names have braces before the prefix:"},
	usual(acl.Fair, "fair locks", "Fair locks", false),
	usual(acl.Tokens, "fencing tokens", "Fenced locks", true),
	usual(acl.ReadWrite, "read/write locks", "Read/write locks", true),
	usual(acl.Latches, "count-down latches", "Count-down latches", true),
	usual(acl.Semaphores, "semaphores", "Semaphores", true),
	{
		id: acl.Clocks, use: "clock comparisons",
		advice: "Without it, clock differences, which delay fair locks, are not reported. Grant it:",
		absent: "Clock differences, which delay fair locks, are not reported.",
	},
	{
		id: acl.Listeners, use: "subscriber counts",
		advice: "Without it, dead waiters of fair locks are not detected, and this process yields locks early. " +
			"It covers all channels. Grant it:",
		absent: "Dead waiters of fair locks are not detected, and this process yields locks early.",
	},
	{
		id: acl.Doubt, use: "uncertain calls",
		advice: "Without it, a call whose reply was lost is polled for one lease. " +
			"client|kill can also close other clients' connections. Grant it where that is acceptable:",
		absent: "A call whose reply was lost is polled for one lease.",
	},
	feature(acl.Inspect, "inspections by programs", "admin.Inspect"),
	{
		id: acl.Owners, use: "shared owners", advice: "Grant it where WithOwner, Resume or UnlockAs is used:",
		absent: "WithOwner, Resume and UnlockAs do not work.",
	},
	feature(acl.Names, "connection names", "WithClientName"),
	feature(acl.Replicas, "waits for replicas", "WithReplicaSync"),
	feature(acl.Labels, "labels", "WithLabel"),
	{
		id: acl.Onlooker, use: "redlatch list, status and watch", advice: "Grant it to users who inspect locks:",
		absent: "redlatch list, status and watch work only in part.",
	},
	{
		id: acl.Operator, use: "redlatch unlock and evict", advice: "Grant it to users who repair locks:",
		absent: "redlatch unlock and evict work only in part.",
	},
	// Viewer is a subset of onlooker and inspect.
	{id: acl.Viewer, use: "inspections by dashboards", named: true, advice: "Grant the missing rights:", absent: "admin.Inspect does not work."},
}

func usual(id, use, kind string, named bool) question {
	return question{
		id: id, use: use, named: named,
		advice: "Grant the missing rights where " + strings.ToLower(kind) + " are used:", absent: kind + " do not work.",
	}
}

func feature(id, use, function string) question {
	return question{id: id, use: use, advice: "Grant it where " + function + " is used:", absent: function + " does not work."}
}

func (q *question) check() string { return q.id + " rights" }

// Needs returns the IDs of package acl that Examine accepts.
func Needs() []string {
	var ids []string
	for i := range questions {
		ids = append(ids, questions[i].id)
	}
	return ids
}

// needed adds plain locks to the named needs that depend on them. It returns nil if none are named.
func needed(named []string) []string {
	var ids []string
	for _, id := range named {
		if need := acl.Of(id); need != nil && need.Adds() && !slices.Contains(named, acl.Plain) && !slices.Contains(ids, acl.Plain) {
			ids = append(ids, acl.Plain)
		}
		ids = append(ids, id)
	}
	return ids
}

func (e *examination) asks(q *question) bool {
	if len(e.needs) == 0 {
		return !q.named
	}
	return slices.Contains(e.needs, q.id)
}

func (e *examination) has(ids ...string) bool {
	return len(e.needs) == 0 || slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(e.needs, id) })
}

// lacking returns the level Error for plain locks and requested needs.
func (e *examination) lacking(id string) Level {
	if len(e.needs) > 0 || id == acl.Plain {
		return Error
	}
	return Warning
}

func (e *examination) rights(q *question) Finding {
	need := acl.Of(q.id)
	if q.id == acl.Braces && !need.Patterns[0].AppliesTo(e.prefix) {
		return good("names with braces work like other names, for names %s", e.names())
	}
	t := e.tried(need)
	if len(t.absent) > 0 {
		return Finding{
			Level: e.lacking(q.id), Found: "the server lacks " + spaced(t.absent) + ", which " + q.use + " need", Advice: q.absent,
		}
	}
	lacks, untried := t.lacks, t.untried
	var f Finding
	switch {
	case len(lacks) > 0:
		f = Finding{Level: e.lacking(q.id), Found: "user " + e.user() + " lacks " + spaced(lacks) + ", which " + q.use + " need", Advice: q.advice}
		if len(untried) > 0 {
			f.Found += "; could not test " + spaced(untried)
		}
	case len(untried) > 0:
		f = unknown("user %s has all tested rights for %s; could not test %s", e.user(), q.use, spaced(untried))
		f.Advice = "To be sure, grant it:"
	case q.id == acl.Plain:
		return good("user %s has all rights for plain locks, for names %s", e.user(), e.names())
	default:
		return good("user %s has all rights for %s", e.user(), q.use)
	}
	// Granting an untested permission is harmless.
	f.Command = e.grant(slices.DeleteFunc(need.Words(e.prefix), func(word string) bool {
		return !slices.Contains(lacks, word) && !slices.Contains(untried, word)
	}))
	return f
}

// Denied explains err, the server's reply to a user who lacks some of the permissions in needs, and
// how to grant them. It tests the permissions, because not all servers name the command that was
// denied in a script.
func Denied(ctx context.Context, srv *connect.Server, prefix string, err error, needs ...string) string {
	missing, unknown := lacks(ctx, srv, prefix, needs...)
	if unknown != nil {
		missing = nil // show only the server's message
	}
	remedy := connect.Remedy(err, missing...)
	if acl.CanHold(prefix) { // without a prefix, doctor prints rules for all names
		remedy = strings.Replace(remedy, "`redlatch doctor`", "`redlatch doctor --prefix "+sanitize.Quote(prefix)+"`", 1)
	}
	return connect.Reason(err) + ". " + remedy
}

// lacks returns the permissions for needs that the user lacks on at least one master, in ACL SETUSER syntax, for
// locks whose names begin with prefix. It omits permissions that it could not test.
func lacks(ctx context.Context, srv *connect.Server, prefix string, needs ...string) ([]string, error) {
	masters, err := srv.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, master := range masters {
		c, err := master.Dial(ctx)
		if err != nil {
			return nil, err
		}
		e := newExam(ctx, master, c, prefix)
		for _, id := range needs {
			for _, word := range e.tried(acl.Of(id)).lacks {
				if !slices.Contains(all, word) && acl.CanHold(word) {
					all = append(all, word)
				}
			}
		}
		e.remove()
		err = c.Err()
		_ = c.Close()
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func newExam(ctx context.Context, master connect.Node, c redis.Conn, prefix string) *examination {
	e := &examination{ctx: ctx, on: master, c: c, prefix: prefix, tries: map[string]verdict{}}
	e.placeName()
	return e
}

type trial struct {
	lacks   []string // not permitted
	untried []string // could not be tested
	absent  []string // commands that the server lacks
}

func (e *examination) tried(need *acl.Need) (t trial) {
	note := func(word string, try func() verdict) {
		what, known := e.tries[word]
		if !known {
			what = try()
			e.tries[word] = what
		}
		switch what {
		case refused:
			t.lacks = append(t.lacks, word)
		case absent:
			t.absent = append(t.absent, word[1:])
		case unknownRight:
			t.untried = append(t.untried, word)
		case granted:
		}
	}
	for _, command := range need.Commands {
		note("+"+command, func() verdict { return e.command(command) })
	}
	for i := range need.Patterns {
		if p := &need.Patterns[i]; !p.IsInBraces() || need.ID == acl.Braces {
			note(p.Word(e.prefix), func() verdict { return e.pattern(p) })
		}
	}
	return t
}

func spaced(words []string) string { return strings.Join(words, " ") }

func (e *examination) names() string {
	return strings.TrimPrefix(acl.Of(acl.Plain).Patterns[0].Word(e.prefix), "~")
}

// user returns the name for an ACL rule, or NAME if it is unknown or cannot be in a rule.
func (e *examination) user() string {
	name, err := redis.String(e.c.Do("ACL", "WHOAMI"))
	if err != nil {
		name = e.on.User
	}
	if name == "" || !acl.CanHold(name) {
		return "NAME"
	}
	return name
}

func (e *examination) grant(words []string) string {
	return "ACL SETUSER " + e.user() + " " + spaced(words)
}
