package history

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// part is one hold of a made-up history of a read/write lock.
type part struct {
	deed
	reads bool
}

// readWrite writes holds down, each with a mark as it begins and one as it ends.
func readWrite(parts ...part) *Story {
	var all []Record
	for i, p := range parts {
		id := fmt.Sprint("h", i)
		for _, r := range p.records(id) {
			if r.Kind == Grant {
				r.Read = p.reads
			}
			all = append(all, r)
		}
		for _, at := range []Time{p.from, p.to} {
			all = append(all, Record{T: at, P: "p", Kind: Mark, Hold: id, Entry: fmt.Sprintf("%d-0", at.Milliseconds())})
		}
	}
	return NewStory(all)
}

func TestReadersMayBeInsideTogetherAndWritersMayNot(t *testing.T) {
	t.Parallel()
	reads := func(owner string, from, to Time) part { return part{deed{owner, from, to}, true} }
	writes := func(owner string, from, to Time) part { return part{deed{owner, from, to}, false} }
	all := []string{"overlap", "marks", "mutex"}
	for what, c := range map[string]struct {
		parts []part
		want  []string
	}{
		"readers together":                   {[]part{reads("a", 1*s, 4*s), reads("b", 2*s, 3*s), reads("c", 2*s, 5*s)}, nil},
		"a writer after readers":             {[]part{reads("a", 1*s, 4*s), reads("b", 2*s, 3*s), writes("c", 5*s, 6*s)}, nil},
		"a writer beside a reader":           {[]part{reads("a", 1*s, 4*s), writes("b", 2*s, 3*s)}, all},
		"a writer beside the first reader":   {[]part{reads("a", 1*s, 9*s), reads("b", 2*s, 3*s), writes("c", 4*s, 5*s)}, all},
		"a reader beside a writer":           {[]part{writes("a", 1*s, 4*s), reads("b", 2*s, 3*s)}, all},
		"a reader and one more, in a writer": {[]part{writes("a", 1*s, 9*s), reads("a", 2*s, 3*s), reads("b", 4*s, 5*s)}, all},
		"two writers":                        {[]part{writes("a", 1*s, 4*s), writes("b", 2*s, 3*s)}, all},
		"a writer reads":                     {[]part{writes("a", 1*s, 4*s), reads("a", 2*s, 3*s), writes("b", 5*s, 6*s)}, nil},
		"a writer goes on as a reader":       {[]part{writes("a", 1*s, 4*s), reads("a", 2*s, 6*s), reads("b", 5*s, 7*s)}, nil},
		"a writer beside one that goes on":   {[]part{writes("a", 1*s, 4*s), reads("a", 2*s, 6*s), writes("b", 5*s, 7*s)}, all},
		"a reader that writes too":           {[]part{reads("a", 1*s, 4*s), writes("a", 2*s, 3*s)}, []string{"mutex"}},
	} {
		assert.ElementsMatch(t, c.want, unique(checks(readWrite(c.parts...))), what)
	}
}

// unique is each name once.
func unique(names []string) (once []string) {
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] {
			once = append(once, name)
		}
		seen[name] = true
	}
	return once
}
