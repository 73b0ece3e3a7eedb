package diagnosis

import (
	"context"
	"slices"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

// rights makes the finding about what the user has of a need.
func (e *examination) rights(q *question) Finding {
	need := acl.Of(q.id)
	if q.id == acl.Braces && !need.Patterns[0].AppliesTo(e.prefix) {
		return good("names with braces are as good as others, for names %s", e.names())
	}
	t := e.tried(need)
	if len(t.absent) > 0 {
		return e.absent(q, "the server", t.absent)
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

// trial is what came of trying the words of a need.
type trial struct {
	lacks   []string // those that the user may not use
	untried []string // those that could not be tried
	absent  []string // the commands that the server does not have
}

// tried tries all words of a need.
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
