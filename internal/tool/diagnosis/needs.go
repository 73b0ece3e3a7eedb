package diagnosis

import (
	"slices"

	"github.com/redlatch/redlatch/internal/acl"
)

// question is what a user is asked about: has it all that a need consists of?
type question struct {
	id    string // of the need
	check string
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
	{
		id: acl.Plain, check: "plain rights", use: "plain locks",
		advice: "Grant what is missing, as an administrator:",
		absent: "No lock can be had here.",
	},
	{
		id: acl.Braces, check: "braces rights", use: "names with braces of their own",
		advice: "Grant it where names have braces before the prefix:",
	},
	{
		id: acl.Fair, check: "fair rights", use: "fair locks",
		advice: "Grant what is missing where fair locks are used:",
		absent: "Fair locks cannot be used here.",
	},
	{
		id: acl.Tokens, check: "tokens rights", use: "fencing tokens", named: true,
		advice: "Grant what is missing where fenced locks are used:",
		absent: "Fenced locks cannot be used here.",
	},
	{
		id: acl.ReadWrite, check: "read-write rights", use: "read/write locks", named: true,
		advice: "Grant what is missing where read/write locks are used:",
		absent: "Read/write locks cannot be used here.",
	},
	{
		id: acl.Latches, check: "latches rights", use: "count-down latches", named: true,
		advice: "Grant what is missing where count-down latches are used:",
		absent: "Count-down latches cannot be used here.",
	},
	{
		id: acl.Semaphores, check: "semaphores rights", use: "semaphores", named: true,
		advice: "Grant what is missing where semaphores are used:",
		absent: "Semaphores cannot be used here.",
	},
	{
		id: acl.Clocks, check: "clocks rights", use: "comparisons of clocks",
		advice: "Without it clocks that are apart, which delay fair locks, are not reported. Grant it:",
		absent: "Clocks that are apart, which delay fair locks, are not reported here.",
	},
	{
		id: acl.Listeners, check: "listeners rights", use: "counts of listeners",
		advice: "Without it dead waiters of fair locks are not known, and turns are cut short on suspicion. " +
			"It covers all channels. Grant it:",
		absent: "Dead waiters of fair locks are not known here, and turns are cut short on suspicion.",
	},
	{
		id: acl.Doubt, check: "doubt rights", use: "calls in doubt",
		advice: "Without it a call whose reply was lost is polled for one lease. " +
			"client|kill reaches the connections of others, too. Grant it where that is acceptable:",
		absent: "A call whose reply was lost is polled for one lease here.",
	},
	{
		id: acl.Inspect, check: "inspect rights", use: "inspections by programs",
		advice: "Grant it where admin.Inspect is used:",
		absent: "admin.Inspect cannot be used here.",
	},
	{
		id: acl.Owners, check: "owners rights", use: "owners that travel",
		advice: "Grant it where WithOwner, Resume, UnlockAs or redlatch run --at-least is used:",
		absent: "WithOwner, Resume, UnlockAs and redlatch run --at-least cannot be used here.",
	},
	{
		id: acl.Names, check: "names rights", use: "names of connections",
		advice: "Grant it where WithClientName is used:",
		absent: "WithClientName cannot be used here.",
	},
	{
		id: acl.Replicas, check: "replicas rights", use: "waits for replicas",
		advice: "Grant it where WithReplicaSync is used:",
		absent: "WithReplicaSync cannot be used here.",
	},
	{
		id: acl.Labels, check: "labels rights", use: "labels",
		advice: "Grant it where WithLabel is used:",
		absent: "WithLabel cannot be used here.",
	},
	{
		id: acl.Onlooker, check: "onlooker rights", use: "redlatch list, status and watch",
		advice: "Grant it to users that inspect locks:",
		absent: "Some of redlatch list, status and watch does not work here.",
	},
	{
		id: acl.Operator, check: "operator rights", use: "redlatch unlock and evict",
		advice: "Grant it to users that repair locks:",
		absent: "Some of redlatch unlock and evict does not work here.",
	},
	{
		// The rights of viewer are a subset of those of onlooker and inspect.
		id: acl.Viewer, check: "viewer rights", use: "inspections by dashboards", named: true,
		advice: "Grant what is missing:",
		absent: "admin.Inspect cannot be used here.",
	},
}

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

// asks reports whether the question is asked.
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
