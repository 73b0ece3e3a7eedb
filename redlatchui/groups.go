package redlatchui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/tool/listing"
	"github.com/redlatch/redlatch/redlatchui/internal/board"
)

// groups is how many prefixes are offered.
const groups = 12

// prefixGroup are the locks whose names have one beginning.
type prefixGroup struct {
	Key, Name, Link string
	Count           int
	prefix          string
}

// groupRow is such a group in the table of groups.
type groupRow struct {
	Key, Name, Link        string
	Trouble                string
	Count, InTrouble, Held int
	Queued                 int64
	Oldest                 string
	prefix                 string
}

// prefixOf returns the beginning of a name, up to a colon, a slash or a dot, "" for none.
func prefixOf(name string) string {
	at := strings.IndexAny(name[:min(len(name), shownName)], ":/.")
	if at <= 0 {
		return ""
	}
	return name[:at+1]
}

// groupRows returns the groups of locks, in the order of the first lock of each. Names without a
// beginning are one group.
func (c *choice) groupRows(some []board.Entry, now time.Time) (all []groupRow) {
	at := map[string]int{}
	oldest := map[string]time.Time{}
	for i := range some {
		e := &some[i]
		prefix := prefixOf(e.Name)
		n, known := at[prefix]
		if !known {
			n, at[prefix] = len(all), len(all)
			all = append(all, c.groupRow(prefix))
		}
		g := &all[n]
		g.Count++
		g.Queued += e.Waiters()
		if isHeld(e) {
			g.Held++
		}
		if e.Trouble != "" {
			g.InTrouble++
			g.Trouble = cmp.Or(g.Trouble, sentence(e.Trouble)) // the worst one comes first
		}
		if first := oldest[prefix]; !e.Since.IsZero() && (first.IsZero() || e.Since.Before(first)) {
			oldest[prefix], g.Oldest = e.Since, span(now.Sub(e.Since))
		}
	}
	return all
}

// groupRow returns an empty group.
func (c *choice) groupRow(prefix string) groupRow {
	if prefix == "" {
		return groupRow{Name: "other names"}
	}
	of := choice{Query: listing.Literal(prefix) + "*", Sort: c.Sort, Only: c.Only}
	return groupRow{Name: nameText(prefix), Link: of.link(1), prefix: prefix}
}

// numberText says what a number is.
func numberText(kind listing.Kind, n *listing.Number) string {
	if kind == listing.Semaphore {
		return fmt.Sprintf("%d taken, %d free", n.Taken, n.Available)
	}
	if kind == listing.Latch {
		return fmt.Sprintf("%d to count down", n.Available)
	}
	return fmt.Sprintf("number %d", n.Available)
}

// groupsOf returns the most frequent beginnings of names, up to a colon, a slash or a dot; none
// when there is only one.
func (c *choice) groupsOf(some []board.Entry) []prefixGroup {
	counts := map[string]int{}
	for i := range some {
		if prefix := prefixOf(some[i].Name); prefix != "" {
			counts[prefix]++
		}
	}
	var all []prefixGroup
	for prefix, n := range counts {
		if n > 1 && n < len(some) {
			g := c.groupRow(prefix)
			all = append(all, prefixGroup{Name: g.Name, Link: g.Link, Count: n, prefix: prefix})
		}
	}
	slices.SortFunc(all, func(a, b prefixGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), groups)]
}
