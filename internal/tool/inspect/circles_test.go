package inspect

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// A thread of Redisson is a letter from A on, and a hold of Redlatch one from a on.
func ownerNamed(letter byte) string {
	if letter < 'a' {
		return fmt.Sprintf("71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:%d", letter)
	}
	return fmt.Sprintf("0193e6c0-6f00-7000-8000-000000000001:%d", letter)
}

func letterOf(owner string) string {
	for letter := byte('A'); letter <= 'z'; letter++ {
		if ownerNamed(letter) == owner {
			return string(letter)
		}
	}
	return owner
}

// lockSet is locks by lines: "x A: B C" is x, which A holds and for which threads B and C are queued; "x ab" is x, which
// readers a and b hold; "x a!" is x, which a holds for writing.
func lockSet(lines ...string) (all []*Lock) {
	for _, line := range lines {
		name, rest, _ := strings.Cut(line, " ")
		holders, queue, _ := strings.Cut(rest, ":")
		writes := strings.HasSuffix(holders, "!")
		holders = strings.TrimSuffix(holders, "!")
		l := &Lock{Name: name, Kind: Plain, Waiting: 1}
		if writes || len(holders) > 1 {
			l.Kind = ReadWrite
		}
		for i := range len(holders) {
			h := Holder{Owner: ownerNamed(holders[i])}
			switch {
			case writes:
				h.Owner, h.Mode = protocol.WriterField(h.Owner), protocol.ModeWrite
			case l.Kind == ReadWrite:
				h.Mode = protocol.ModeRead
			}
			l.Holders = append(l.Holders, h)
		}
		for _, waiter := range strings.Fields(queue) {
			l.Places = append(l.Places, ownerNamed(waiter[0]))
		}
		all = append(all, l)
	}
	return all
}

// announce adds a wait inside the holds of an owner.
func announce(all []*Lock, letter byte, in *Inner) {
	for _, l := range all {
		for i := range l.Holders {
			if bareOwner(l.Holders[i].Owner) == ownerNamed(letter) {
				l.Holders[i].Inner = in
			}
		}
	}
}

func shownCircles(found []Circle) (all []string) {
	for _, c := range found {
		var steps []string
		for _, s := range c {
			steps = append(steps, letterOf(s.Waiter)+" "+s.Lock+" "+letterOf(bareOwner(s.Holder)))
		}
		all = append(all, strings.Join(steps, ", "))
	}
	return all
}

func TestFindCirclesKnowsWhoBlocksWhom(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		locks string
		inner string // "a x" is a wait for x inside the holds of a, "a x r" one for reading
		found string
	}{
		"threads":                         {"x A: B/y B: A", "", "A y B, B x A"},
		"three, behind another":           {"x A: E C/y B: A/z C: B", "", "A y B, B z C, C x A"},
		"a chain":                         {"x A: B/y B: C", "", ""},
		"a free lock":                     {"x : A B/y B: A", "", ""},
		"the same lock":                   {"x A: A", "", ""},
		"nested":                          {"x a/y b", "a y,b x", "a y b, b x a"},
		"nested in itself":                {"x a", "a x", "a x a"},
		"nested and a thread":             {"x a: B/y B", "a y", "a y B, B x a"},
		"places of Redlatch alone":        {"x a: b/y b: a", "", ""},
		"one of several readers":          {"x ac/y b", "a y,b x", "a y b, b x a"},
		"a reader does not block readers": {"x ac/y b", "a y,b x r", ""},
		"a writer blocks readers":         {"x a!/y b", "a y,b x r", "a y b, b x a"},
		"an unknown lock":                 {"x a", "a y", ""},
	} {
		locks := lockSet(strings.Split(c.locks, "/")...)
		for _, wait := range strings.Split(c.inner, ",") {
			if f := strings.Fields(wait); len(f) > 1 {
				announce(locks, f[0][0], &Inner{Lock: f[1], Reads: len(f) > 2})
			}
		}
		require.Equal(t, c.found, strings.Join(shownCircles(FindCircles(locks, nobody)), "; "), what)
	}
	text, err := json.Marshal(FindCircles(lockSet("\xff A: B", "y B: A"), nobody))
	require.NoError(t, err)
	require.Contains(t, string(text), `"lock":"\ufffd","lock_base64":"/w==",`)
	dead := func(lock, owner string) bool { return lock == "x" && owner == ownerNamed('B') }
	require.Empty(t, FindCircles(lockSet("x A: B", "y B: A"), dead))
	over := lockSet("x ac", "y b")
	announce(over, 'a', &Inner{Lock: "y"})
	announce(over, 'b', &Inner{Lock: "x"})
	over[0].Holders[0].LeftMillis = new(int64)
	require.Empty(t, FindCircles(over, nobody), "an expired reader does not block")
	over[0].Holders[0].LeftMillis, over[0].Holders[0].unsure = nil, true
	require.Empty(t, FindCircles(over, nobody), "it may have expired")
}

// stuck runs all programs as far as they get: a wait ends when no other owner blocks it, and an owner whose waits have
// ended releases its locks. It returns the waits that never end, such as "A x".
func stuck(locks []*Lock, dead func(lock, owner string) bool) map[string]bool {
	type wait struct {
		on    *Lock
		reads bool
		inner bool
	}
	waits := map[string][]wait{}
	for _, l := range locks {
		for _, place := range l.Places {
			if letterOf(place) < "a" && l.Kind != ReadWrite && !dead(l.Name, place) {
				waits[place] = append(waits[place], wait{on: l})
			}
		}
		for _, h := range l.Holders {
			if h.Inner == nil {
				continue
			}
			for _, on := range locks {
				if on.Name == h.Inner.Lock {
					waits[bareOwner(h.Owner)] = append(waits[bareOwner(h.Owner)], wait{on, h.Inner.Reads, true})
				}
			}
		}
	}
	released := map[string]bool{}
	blocked := func(owner string, w wait) bool {
		return slices.ContainsFunc(w.on.Holders, func(h Holder) bool {
			by := bareOwner(h.Owner)
			return !released[by] && (w.inner || by != owner) && (!w.reads || h.Mode == protocol.ModeWrite)
		})
	}
	for again := true; again; {
		again = false
		for _, l := range locks {
			for _, h := range l.Holders {
				owner := bareOwner(h.Owner)
				free := !slices.ContainsFunc(waits[owner], func(w wait) bool { return blocked(owner, w) })
				if free && !released[owner] {
					released[owner], again = true, true
				}
			}
		}
	}
	never := map[string]bool{}
	for owner, all := range waits {
		for _, w := range all {
			if blocked(owner, w) {
				never[letterOf(owner)+" "+w.on.Name] = true
			}
		}
	}
	return never
}

// Each circle consists of waits that never end, and if any wait never ends, there is a circle.
func TestCirclesMatchBruteForce(t *testing.T) {
	t.Parallel()
	const threads, nested = "ABCD", "abcd"
	rapid.Check(testlevel.Drawn{T: t}, func(t *rapid.T) {
		var lines []string
		one := func(of string) string { return string(of[rapid.IntRange(0, len(of)-1).Draw(t, "owner")]) }
		n := rapid.IntRange(1, 6).Draw(t, "locks")
		for i := range n {
			holders := rapid.SampledFrom([]func() string{
				func() string { return "" },
				func() string { return one(threads + nested) },
				func() string { return one(threads+nested) + "!" },
				func() string {
					all := []byte(one(threads+nested) + one(threads+nested) + one(threads+nested))
					slices.Sort(all)
					return string(slices.Compact(all))
				},
			}).Draw(t, "holders")()
			line := fmt.Sprintf("%d %s:", i, holders)
			for range rapid.IntRange(0, 2).Draw(t, "places") {
				line += " " + one(threads+nested)
			}
			lines = append(lines, line)
		}
		locks := lockSet(lines...)
		for i := range len(nested) {
			if rapid.Bool().Draw(t, "waits") {
				announce(locks, nested[i], &Inner{Lock: fmt.Sprint(rapid.IntRange(0, n).Draw(t, "lock")), Reads: rapid.Bool().Draw(t, "reads")})
			}
		}
		gone := fmt.Sprint(rapid.IntRange(0, n).Draw(t, "gone")) + ownerNamed(one(threads)[0])
		dead := func(lock, owner string) bool { return lock+owner == gone }
		never := stuck(locks, dead)
		found := FindCircles(locks, dead)
		if (len(found) > 0) != (len(never) > 0) {
			t.Fatalf("circles %q, but waits that never end %v, in %q", shownCircles(found), never, lines)
		}
		for _, c := range found {
			for i, s := range c {
				if next := c[(i+1)%len(c)]; bareOwner(s.Holder) != next.Waiter || !never[letterOf(s.Waiter)+" "+s.Lock] {
					t.Fatalf("%q is no circle of waits that never end, %v, in %q", shownCircles(found), never, lines)
				}
			}
		}
	})
}

func TestConfirmationNeedsTwoLooksAndNewAnnouncements(t *testing.T) {
	synctest.Test(t, testConfirmation)
}

func testConfirmation(t *testing.T) {
	look := func(id string, written int64) []Circle {
		locks := lockSet("x a: B", "y B")
		announce(locks, 'a', &Inner{Lock: "y", ID: id, Written: written})
		return FindCircles(locks, nobody)
	}
	var k Confirmation
	for i, step := range []struct {
		after   time.Duration
		found   []Circle
		certain bool
	}{
		{0, look("1", 4), false},
		{queuedFor, look("1", 4), false}, // perhaps its process has died
		{0, look("1", 5), true},
		{0, look("1", 5), true},
		{0, look("2", 6), false}, // another wait
		{queuedFor - 1, look("2", 7), false},
		{1, look("2", 7), true},
		{0, nil, false},
		{queuedFor, look("2", 8), false},
	} {
		time.Sleep(step.after)
		certain, pending := k.Confirm(step.found)
		require.Equal(t, step.certain, len(certain) > 0, i)
		require.Equal(t, len(step.found) > 0 && !step.certain, pending, i)
	}
}

func TestInnerOfRejectsOtherTexts(t *testing.T) {
	t.Parallel()
	require.Equal(t, &Inner{Lock: "a b", ID: "c 3", Written: 2, Reads: true}, innerOf("c 3 2 read a b"))
	for _, other := range []string{"", "c 3 2 read", "c 3 2 read ", "c 3 x read a", "c 3 0 read a", "c 3 2 plain " + strings.Repeat("x", 1012)} {
		require.Nil(t, innerOf(other), other)
	}
}
