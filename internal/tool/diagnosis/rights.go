package diagnosis

import (
	"context"
	"slices"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

// question is what a user is asked about: has it all that a need consists of?
type question struct {
	id string // of the need
	// use is what has the need, in the plural.
	use string
	// advice says what is worse without, before the line that grants what is missing.
	advice string
	// absent says what cannot be done on a server that leaves out a command, for any user.
	absent string
	// named is true for needs that are looked at only when they are named.
	named bool
}

// questions are those that are asked, in the order of the output.
var questions = []question{
	{id: acl.Plain, use: "plain locks", advice: "Grant what is missing, as an administrator:", absent: "No lock can be had here."},
	{
		id: acl.Braces, use: "names with braces of their own",
		advice: "Grant it where names have braces before the prefix:",
	},
	{
		id: acl.Fair, use: "fair locks",
		advice: "Grant what is missing where fair locks are used:", absent: "Fair locks cannot be used here.",
	},
	{
		id: acl.Tokens, use: "fencing tokens", named: true,
		advice: "Grant what is missing where fenced locks are used:", absent: "Fenced locks cannot be used here.",
	},
	{
		id: acl.ReadWrite, use: "read/write locks", named: true,
		advice: "Grant what is missing where read/write locks are used:", absent: "Read/write locks cannot be used here.",
	},
	{
		id: acl.Latches, use: "count-down latches", named: true,
		advice: "Grant what is missing where count-down latches are used:", absent: "Count-down latches cannot be used here.",
	},
	{
		id: acl.Semaphores, use: "semaphores", named: true,
		advice: "Grant what is missing where semaphores are used:", absent: "Semaphores cannot be used here.",
	},
	{
		id: acl.Clocks, use: "comparisons of clocks",
		advice: "Without it clocks that are apart, which delay fair locks, are not reported. Grant it:",
		absent: "Clocks that are apart, which delay fair locks, are not reported here.",
	},
	{
		id: acl.Listeners, use: "counts of listeners",
		advice: "Without it dead waiters of fair locks are not known, and turns are cut short on suspicion. " +
			"It covers all channels. Grant it:",
		absent: "Dead waiters of fair locks are not known here, and turns are cut short on suspicion.",
	},
	{
		id: acl.Doubt, use: "calls in doubt",
		advice: "Without it a call whose reply was lost is polled for one lease. " +
			"client|kill reaches the connections of others, too. Grant it where that is acceptable:",
		absent: "A call whose reply was lost is polled for one lease here.",
	},
	{
		id: acl.Inspect, use: "inspections by programs",
		advice: "Grant it where admin.Inspect is used:", absent: "admin.Inspect cannot be used here.",
	},
	{
		id: acl.Owners, use: "owners that travel", advice: "Grant it where WithOwner, Resume, UnlockAs or redlatch run --at-least is used:",
		absent: "WithOwner, Resume, UnlockAs and redlatch run --at-least cannot be used here.",
	},
	{
		id: acl.Names, use: "names of connections",
		advice: "Grant it where WithClientName is used:", absent: "WithClientName cannot be used here.",
	},
	{
		id: acl.Replicas, use: "waits for replicas",
		advice: "Grant it where WithReplicaSync is used:", absent: "WithReplicaSync cannot be used here.",
	},
	{
		id: acl.Labels, use: "labels",
		advice: "Grant it where WithLabel is used:", absent: "WithLabel cannot be used here.",
	},
	{
		id: acl.Onlooker, use: "redlatch list, status and watch", advice: "Grant it to users that inspect locks:",
		absent: "Some of redlatch list, status and watch does not work here.",
	},
	{
		id: acl.Operator, use: "redlatch unlock and evict", advice: "Grant it to users that repair locks:",
		absent: "Some of redlatch unlock and evict does not work here.",
	},
	// The rights of viewer are a subset of those of onlooker and inspect.
	{id: acl.Viewer, use: "inspections by dashboards", named: true, advice: "Grant what is missing:", absent: "admin.Inspect cannot be used here."},
}

func (q *question) check() string { return q.id + " rights" }

// Needs returns what Examine may be asked about, by the IDs of package acl.
func Needs() []string {
	var ids []string
	for i := range questions {
		ids = append(ids, questions[i].id)
	}
	return ids
}

// needed returns the needs that are named, and what they add to. Without any it
// returns nil, which means all that are asked about anyway.
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

// has reports whether one of these needs is asked about.
func (e *examination) has(ids ...string) bool {
	return len(e.needs) == 0 || slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(e.needs, id) })
}

// lacking is how bad it is not to have what a need consists of: an error where that
// is needed for sure.
func (e *examination) lacking(id string) Level {
	if len(e.needs) > 0 || id == acl.Plain {
		return Error
	}
	return Warning
}

// rights makes the finding about what the user has of a need.
func (e *examination) rights(q *question) Finding {
	need := acl.Of(q.id)
	if q.id == acl.Braces && !need.Patterns[0].AppliesTo(e.prefix) {
		return good("names with braces are as good as others, for names %s", e.names())
	}
	t := e.tried(need)
	if len(t.absent) > 0 {
		return Finding{
			Level: e.lacking(q.id), Found: "the server has no " + spaced(t.absent) + ", which " + q.use + " need", Advice: q.absent,
		}
	}
	lacks, untried := t.lacks, t.untried
	var f Finding
	switch {
	case len(lacks) > 0:
		f = Finding{Level: e.lacking(q.id), Found: "user " + e.user() + " lacks " + spaced(lacks) + ", which " + q.use + " need", Advice: q.advice}
		if len(untried) > 0 {
			f.Found += "; it could not be tried whether it has " + spaced(untried)
		}
	case len(untried) > 0:
		f = unknown("user %s lacks nothing that %s need, as far as it could be tried: not %s", e.user(), q.use, spaced(untried))
		f.Advice = "To be sure, grant it:"
	case q.id == acl.Plain:
		return good("user %s has all that plain locks need, for names %s", e.user(), e.names())
	default:
		return good("user %s has all that %s need", e.user(), q.use)
	}
	// What could not be tried does no harm.
	f.Command = e.grant(slices.DeleteFunc(need.Words(e.prefix), func(word string) bool {
		return !slices.Contains(lacks, word) && !slices.Contains(untried, word)
	}))
	return f
}

// Lacks tries what rights a user has of needs, for locks whose names begin with prefix, and
// returns what it lacks on any master, in the words of ACL SETUSER. Rights that could not be
// tried, or that no rule can hold, are not among them. An error means that a master was not reached.
func Lacks(ctx context.Context, srv *connect.Server, prefix string, needs ...string) ([]string, error) {
	masters, err := srv.Masters(ctx)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, master := range masters {
		lacks, err := lacksAt(ctx, master, prefix, needs)
		if err != nil {
			return nil, err
		}
		for _, word := range lacks {
			if !slices.Contains(all, word) && acl.CanHold(word) {
				all = append(all, word)
			}
		}
	}
	return all, nil
}

func lacksAt(ctx context.Context, master *connect.Server, prefix string, needs []string) (all []string, err error) {
	c, err := master.Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }() // nothing is buffered
	e := newExam(ctx, master, c, prefix)
	defer e.remove()
	for _, id := range needs {
		all = append(all, e.tried(acl.Of(id)).lacks...)
	}
	return all, c.Err()
}

func newExam(ctx context.Context, srv *connect.Server, c redis.Conn, prefix string) *examination {
	e := &examination{ctx: ctx, srv: srv, problem: srv.Problem, c: c, prefix: prefix, tries: map[string]verdict{}}
	e.placeName()
	return e
}

// trial is what came of trying the words of a need.
type trial struct {
	lacks   []string // those that the user may not use
	untried []string // those that could not be tried
	absent  []string // the commands that the server does not have
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

// names says which names were looked at.
func (e *examination) names() string {
	return strings.TrimPrefix(acl.Of(acl.Plain).Patterns[0].Word(e.prefix), "~")
}

// user returns the user of the connection on the server, NAME when it is unknown or no user of
// ACL SETUSER.
func (e *examination) user() string {
	name, err := redis.String(e.c.Do("ACL", "WHOAMI"))
	if err != nil && e.srv != nil {
		name = e.srv.User()
	}
	if name == "" || !acl.CanHold(name) {
		return "NAME"
	}
	return name
}

// grant returns what to send to give the user what it lacks.
func (e *examination) grant(words []string) string {
	return "ACL SETUSER " + e.user() + " " + spaced(words)
}
