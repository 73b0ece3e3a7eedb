package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// share is one hold of a made-up history of a semaphore of three.
type share struct {
	deed
	n int64
}

const most = 3

// semaphore writes holds down, each with a mark as it begins and one as it ends.
func semaphore(shares []share, more ...Record) *Story {
	all := more
	for i, p := range shares {
		id := fmt.Sprint("h", i)
		for _, r := range p.records(id) {
			switch r.Kind {
			case Grant:
				r.Permits, r.Most = p.n, most
			case Call:
				r.Op = map[string]string{"lock": "acquire", "unlock": "release"}[r.Op]
			}
			all = append(all, r)
		}
		for _, at := range []Time{p.from, p.to} {
			all = append(all, Record{T: at, P: "p", Kind: Mark, Hold: id, Entry: fmt.Sprintf("%d-%d", at.Milliseconds(), at%time.Millisecond)})
		}
	}
	return NewStory(all)
}

func TestNoMorePermitsMayBeOutThanWereSet(t *testing.T) {
	t.Parallel()
	has := func(owner string, from, to Time, n int64) share { return share{deed{owner, from, to}, n} }
	both := []string{"permits", "marks"}
	forgot := Record{T: 1 * s, Until: 1 * s, Kind: Fault, Key: "k"}
	killed := Record{T: 2*s + 1, P: "p", Kind: Kill}
	for what, c := range map[string]struct {
		shares []share
		more   []Record
		want   []string
	}{
		"three holders of three":             {shares: []share{has("a", 1*s, 4*s, 1), has("b", 2*s, 4*s, 1), has("c", 3*s, 4*s, 1)}},
		"a fourth":                           {shares: []share{has("a", 1*s, 4*s, 1), has("b", 2*s, 4*s, 1), has("c", 2*s+1, 4*s, 1), has("d", 3*s, 5*s, 1)}, want: both},
		"a fourth for no longer than a mark": {shares: []share{has("a", 1*s, 4*s, 3), has("d", 3*s, 3*s, 1)}, want: []string{"marks"}},
		"two of two permits":                 {shares: []share{has("a", 1*s, 4*s, 2), has("b", 2*s, 3*s, 2)}, want: both},
		"two and one":                        {shares: []share{has("a", 1*s, 4*s, 2), has("b", 2*s, 3*s, 1)}},
		"one after the other":                {shares: []share{has("a", 1*s, 2*s, 3), has("b", 2*s+1, 3*s, 3), has("c", 4*s, 5*s, 3)}},
		"the first is there all the time":    {shares: []share{has("a", 1*s, 9*s, 1), has("b", 2*s, 3*s, 2), has("c", 4*s, 5*s, 2), has("d", 4*s+1, 5*s, 1)}, want: both},
		"the server was made to forget":      {shares: []share{has("a", 1*s, 4*s, 2), has("b", 2*s, 3*s, 2)}, more: []Record{forgot}},
		"the first was killed before":        {shares: []share{has("a", 1*s, 4*s, 3)}, more: []Record{killed, {T: 3 * s, P: "q", Kind: Grant, ID: "z", Hold: "z", Key: "k", Owner: "z", Permits: 3, Most: most}}},
	} {
		assert.ElementsMatch(t, c.want, unique(checks(semaphore(c.shares, c.more...))), what)
	}
}

func TestAServerHasNoMorePermitsThanWereSet(t *testing.T) {
	t.Parallel()
	asked := func(available, taken int64, exact bool, from, to Time) Record {
		return Record{T: from, Until: to, P: "p", Kind: Stock, Key: "k", Available: available, Count: taken, Most: most, Exact: exact}
	}
	one := []share{{deed{"a", 1 * s, 4 * s}, 2}}
	stock := []string{"stock"}
	for what, c := range map[string]struct {
		record Record
		want   []string
	}{
		"all are there":                           {asked(1, 2, true, 2*s, 3*s), nil},
		"one too many is available":               {asked(2, 2, false, 5*s, 6*s), stock},
		"one too many is taken":                   {asked(0, 4, false, 2*s, 3*s), stock},
		"one is lost":                             {asked(0, 2, true, 2*s, 3*s), stock},
		"one is lost with a reply":                {asked(0, 2, false, 2*s, 3*s), nil},
		"one that is held is available":           {asked(2, 0, false, 2*s, 3*s), stock},
		"one that was held when it was asked":     {asked(3, 0, false, 3*s, 5*s), nil},
		"one that was held when the answer came":  {asked(3, 0, false, s/2, 3*s), nil},
		"one is held and available, exactly then": {asked(2, 1, false, 1*s, 4*s), stock},
		"the server was made to forget":           {asked(9, 9, true, 2*s, 3*s), nil},
	} {
		more := []Record{c.record}
		if what == "the server was made to forget" {
			more = append(more, Record{T: 0, Until: 1, Kind: Fault, Key: "*"})
		}
		assert.Equal(t, c.want, checks(semaphore(one, more...)), what)
	}
}

// An attempt that a release was enough for, and which got nothing.
func TestPermitsThatLieIdleWithWaitersAreFound(t *testing.T) {
	t.Parallel()
	waiter := func(n int64, op string) []Record {
		return []Record{
			{T: 2 * s, P: "p", Kind: Call, ID: "w", Op: op, Key: "k", Permits: n, Wait: 60 * s},
			{T: 20 * s, P: "p", Kind: Return, ID: "w", Err: "not-acquired"},
		}
	}
	held := []share{{deed{"a", 1 * s, 4 * s}, 2}}
	assert.Equal(t, []string{"idle"}, checks(semaphore(held, waiter(1, "acquire")...)))
	assert.Equal(t, []string{"idle"}, checks(semaphore(held, waiter(2, "acquire")...)))
	assert.Empty(t, checks(semaphore(held, waiter(3, "acquire")...)), "two are not enough")
	assert.Empty(t, checks(semaphore(held, waiter(1, "acquire in order")...)), "another may come before it")
	taken := append(held, share{deed{"b", 5 * s, 19 * s}, 1})
	assert.Equal(t, []string{"idle"}, checks(semaphore(taken, waiter(1, "acquire")...)), "there is another one")
	assert.Empty(t, checks(semaphore(taken, waiter(2, "acquire")...)), "one is not enough")
	taken = append(taken, share{deed{"c", 6 * s, 19 * s}, 1})
	assert.Empty(t, checks(semaphore(taken, waiter(1, "acquire")...)))
}

// A permit that is lost before its hold ends by itself, or when it is released.
func TestAPermitThatIsLostEarlyIsFound(t *testing.T) {
	t.Parallel()
	records := share{deed{"a", 1 * s, 4 * s}, 1}.records("h")
	for i := range records {
		if records[i].Kind == Call && records[i].Op == "unlock" {
			records[i].Op = "release"
		}
	}
	records[len(records)-1].Err = "lost"
	records[2].Permits, records[2].Most = 1, most
	assert.Equal(t, []string{"early"}, checks(NewStory(records)))
}
