//go:build linux

package history

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// share is one hold on a semaphore with three permits, or on a read/write lock if n is 0.
type share struct {
	deed
	n     int64
	reads bool
}

const most = 3

// marked returns a story of holds, each with a mark at its beginning and its end.
func marked(shares []share, more ...Record) *Story {
	all := more
	for i, p := range shares {
		id := fmt.Sprint("h", i)
		for _, r := range p.records(id) {
			switch {
			case r.Kind == Grant && p.n > 0:
				r.Permits, r.Most = p.n, most
			case r.Kind == Grant:
				r.Read = p.reads
			case r.Kind == Call && p.n > 0:
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

func TestTooManyPermitsHeldIsFound(t *testing.T) {
	t.Parallel()
	has := func(owner string, from, to Time, n int64) share { return share{deed{owner, from, to}, n, false} }
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
		"sequential":                         {shares: []share{has("a", 1*s, 2*s, 3), has("b", 2*s+1, 3*s, 3), has("c", 4*s, 5*s, 3)}},
		"the first stays all the time":       {shares: []share{has("a", 1*s, 9*s, 1), has("b", 2*s, 3*s, 2), has("c", 4*s, 5*s, 2), has("d", 4*s+1, 5*s, 1)}, want: both},
		"data loss":                          {shares: []share{has("a", 1*s, 4*s, 2), has("b", 2*s, 3*s, 2)}, more: []Record{forgot}},
		"the first was killed before":        {shares: []share{has("a", 1*s, 4*s, 3)}, more: []Record{killed, {T: 3 * s, P: "q", Kind: Grant, ID: "z", Hold: "z", Key: "k", Owner: "z", Permits: 3, Most: most}}},
	} {
		assert.ElementsMatch(t, c.want, unique(checks(marked(c.shares, c.more...))), what)
	}
}

func TestTooManyPermitsOnServerIsFound(t *testing.T) {
	t.Parallel()
	asked := func(available, taken int64, exact bool, from, to Time) Record {
		return Record{T: from, Until: to, P: "p", Kind: Stock, Key: "k", Available: available, Count: taken, Most: most, Exact: exact}
	}
	one := []share{{deed{"a", 1 * s, 4 * s}, 2, false}}
	stock := []string{"stock"}
	for what, c := range map[string]struct {
		record Record
		want   []string
	}{
		"all accounted for":                     {asked(1, 2, true, 2*s, 3*s), nil},
		"one too many is available":             {asked(2, 2, false, 5*s, 6*s), stock},
		"one too many is taken":                 {asked(0, 4, false, 2*s, 3*s), stock},
		"one is lost":                           {asked(0, 2, true, 2*s, 3*s), stock},
		"one is lost with a reply":              {asked(0, 2, false, 2*s, 3*s), nil},
		"a held permit is available":            {asked(2, 0, false, 2*s, 3*s), stock},
		"released during the count":             {asked(3, 0, false, 3*s, 5*s), nil},
		"acquired during the count":             {asked(3, 0, false, s/2, 3*s), nil},
		"held and available in the whole count": {asked(2, 1, false, 1*s, 4*s), stock},
		"data loss":                             {asked(9, 9, true, 2*s, 3*s), nil},
	} {
		more := []Record{c.record}
		if what == "data loss" {
			more = append(more, Record{T: 0, Until: 1, Kind: Fault, Key: "*"})
		}
		assert.Equal(t, c.want, checks(marked(one, more...)), what)
	}
}

// The waiter could have acquired permits, but timed out.
func TestIdlePermitsWithWaitersAreFound(t *testing.T) {
	t.Parallel()
	waiter := func(n int64, op string) []Record {
		return []Record{
			{T: 2 * s, P: "p", Kind: Call, ID: "w", Op: op, Key: "k", Permits: n, Wait: 60 * s},
			{T: 20 * s, P: "p", Kind: Return, ID: "w", Err: "not-acquired"},
		}
	}
	held := []share{{deed{"a", 1 * s, 4 * s}, 2, false}}
	assert.Equal(t, []string{"idle"}, checks(marked(held, waiter(1, "acquire")...)))
	assert.Equal(t, []string{"idle"}, checks(marked(held, waiter(2, "acquire")...)))
	assert.Empty(t, checks(marked(held, waiter(3, "acquire")...)), "two are not enough")
	taken := append(held, share{deed{"b", 5 * s, 19 * s}, 1, false})
	assert.Equal(t, []string{"idle"}, checks(marked(taken, waiter(1, "acquire")...)), "one is still free")
	assert.Empty(t, checks(marked(taken, waiter(2, "acquire")...)), "one is not enough")
	taken = append(taken, share{deed{"c", 6 * s, 19 * s}, 1, false})
	assert.Empty(t, checks(marked(taken, waiter(1, "acquire")...)))
}

func TestReadersOverlapAndWritersExclude(t *testing.T) {
	t.Parallel()
	reads := func(owner string, from, to Time) share { return share{deed{owner, from, to}, 0, true} }
	writes := func(owner string, from, to Time) share { return share{deed{owner, from, to}, 0, false} }
	all := []string{"overlap", "marks"}
	for what, c := range map[string]struct {
		parts []share
		want  []string
	}{
		"readers together":                   {[]share{reads("a", 1*s, 4*s), reads("b", 2*s, 3*s), reads("c", 2*s, 5*s)}, nil},
		"a writer after readers":             {[]share{reads("a", 1*s, 4*s), reads("b", 2*s, 3*s), writes("c", 5*s, 6*s)}, nil},
		"a writer during a read":             {[]share{reads("a", 1*s, 4*s), writes("b", 2*s, 3*s)}, all},
		"a writer during the first read":     {[]share{reads("a", 1*s, 9*s), reads("b", 2*s, 3*s), writes("c", 4*s, 5*s)}, all},
		"a reader during a write":            {[]share{writes("a", 1*s, 4*s), reads("b", 2*s, 3*s)}, all},
		"a reader and one more, in a writer": {[]share{writes("a", 1*s, 9*s), reads("a", 2*s, 3*s), reads("b", 4*s, 5*s)}, all},
		"two writers":                        {[]share{writes("a", 1*s, 4*s), writes("b", 2*s, 3*s)}, all},
		"a writer reads":                     {[]share{writes("a", 1*s, 4*s), reads("a", 2*s, 3*s), writes("b", 5*s, 6*s)}, nil},
		"a writer continues as a reader":     {[]share{writes("a", 1*s, 4*s), reads("a", 2*s, 6*s), reads("b", 5*s, 7*s)}, nil},
		"a writer during such a read":        {[]share{writes("a", 1*s, 4*s), reads("a", 2*s, 6*s), writes("b", 5*s, 7*s)}, all},
		"a reader that writes too":           {[]share{reads("a", 1*s, 4*s), writes("a", 2*s, 3*s)}, []string{"overlap"}},
	} {
		assert.ElementsMatch(t, c.want, unique(checks(marked(c.parts))), what)
	}
}

func unique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

func TestNonIncreasingTokensAreFound(t *testing.T) {
	t.Parallel()
	deeds := []deed{{"a", 1 * s, 2 * s}, {"b", 3 * s, 4 * s}, {"c", 5 * s, 6 * s}}
	forgot := Record{T: 4500 * s / 1000, Until: 4600 * s / 1000, Kind: Fault, Op: "restarted empty", Key: "*"}
	for what, c := range map[string]struct {
		tokens []int64
		more   []Record
		want   []string
	}{
		"they grow":                             {[]int64{1, 2, 7}, nil, nil},
		"a lock without tokens":                 {[]int64{0, 0, 0}, nil, nil},
		"the same twice":                        {[]int64{1, 1, 2}, nil, []string{"tokens"}},
		"it falls":                              {[]int64{5, 6, 1}, nil, []string{"tokens"}},
		"it falls below one long before":        {[]int64{5, 0, 4}, nil, []string{"tokens"}},
		"the server was made to forget":         {[]int64{5, 6, 1}, []Record{forgot}, nil},
		"the server was made to forget, later":  {[]int64{6, 5, 1}, []Record{forgot}, []string{"tokens"}},
		"the server forgot one key and not all": {[]int64{5, 6, 1}, []Record{{T: forgot.T, Until: forgot.Until, Kind: Fault, Key: "other"}}, []string{"tokens"}},
	} {
		var all []Record
		for i, d := range deeds {
			for _, r := range d.records(fmt.Sprint("h", i)) {
				if r.Kind == Grant {
					r.Token = c.tokens[i]
				}
				all = append(all, r)
			}
		}
		assert.Equal(t, c.want, checks(NewStory(append(all, c.more...))), what)
	}
}
