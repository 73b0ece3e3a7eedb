package exporter

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/redlatch/redlatch/internal/tool/listing"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

const (
	// Everything is the group of all locks when there are no others.
	Everything = "all"
	// Rest is the group of the locks that no pattern matches.
	Rest = "other"

	// maxGroups bounds the number of series.
	maxGroups = 100
)

// Groups sort locks by their names. The zero Groups have one group, Everything.
type Groups struct {
	names    []string // each once, in the order of the patterns
	patterns []pattern
}

type pattern struct {
	group   int
	matches func(name string) bool
}

// groupName is what a group can be called: short, and safe in every query.
var groupName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$`)

// ParseGroups reads groups, each as GROUP=PATTERN. A lock is of the first group whose pattern,
// one of Redis's, matches its name, else of Rest. Several patterns may name one group.
func ParseGroups(texts []string) (Groups, error) {
	var g Groups
	index := map[string]int{}
	for _, text := range texts {
		name, glob, found := strings.Cut(text, "=")
		switch {
		case !found || glob == "":
			return Groups{}, fmt.Errorf("%s is not of the form GROUP=PATTERN", sanitize.Word(text))
		case !groupName.MatchString(name):
			return Groups{}, fmt.Errorf("%s cannot be the name of a group: use up to 63 letters, digits, and . _ -", sanitize.Word(name))
		case name == Rest:
			return Groups{}, errors.New(Rest + " is the group of the locks that no pattern matches: choose another name")
		}
		at, known := index[name]
		if !known {
			at = len(g.names)
			index[name] = at
			g.names = append(g.names, name)
		}
		g.patterns = append(g.patterns, pattern{at, listing.Match(glob)})
	}
	if len(g.names) > maxGroups {
		return Groups{}, fmt.Errorf("%d groups are too many: each has series of its own, and %d are the most", len(g.names), maxGroups)
	}
	return g, nil
}

// Names returns the groups, the last one being that of the other locks.
func (g Groups) Names() []string {
	if len(g.names) == 0 {
		return []string{Everything}
	}
	return append(g.names[:len(g.names):len(g.names)], Rest)
}

// of returns the place in Names of a lock's group.
func (g Groups) of(name string) int {
	for _, p := range g.patterns {
		if p.matches(name) {
			return p.group
		}
	}
	return len(g.names)
}
