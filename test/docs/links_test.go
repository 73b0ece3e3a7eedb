package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

var (
	mdFence   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	mdHeading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	mdLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// anchor returns the name by which a heading is linked to, as GitHub makes it.
func anchor(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case r == ' ':
			b.WriteRune('-')
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Links between the documents lead to a file that is there, and to a heading of it.
func TestEveryLinkOfTheDocumentsLeadsSomewhere(t *testing.T) {
	t.Parallel()
	anchors := map[string]map[string]bool{}
	prose := map[string]string{}
	for path, text := range sources(t, ".md") {
		prose[path] = mdFence.ReplaceAllString(text, "")
		anchors[path] = map[string]bool{}
		for _, m := range mdHeading.FindAllStringSubmatch(prose[path], -1) {
			anchors[path][anchor(m[1])] = true
		}
	}
	found := 0
	for path, text := range prose {
		for _, m := range mdLink.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			found++
			file, section, _ := strings.Cut(m[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), filepath.FromSlash(file))
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[1])
			} else if section != "" && !anchors[target][section] {
				t.Errorf("%s links to %s, and there is no such heading", path, m[1])
			}
		}
	}
	require.Greater(t, found, 50, "no links were found: the check itself is broken")
}

// What the documents call by its package is declared there.
func TestEveryNameOfOurPackagesInTheDocumentsIsDeclared(t *testing.T) {
	t.Parallel()
	declaration := regexp.MustCompile(`(?m)^(?:func |type |var |const |\t)([A-Z]\w*)`)
	folders := map[string]string{
		"redlatch": ".", "rlock": "rlock", "rfairlock": "rfairlock", "rfencedlock": "rfencedlock", "fence": "fence", "codec": "codec",
		"transport": "transport", "embedded": "embedded", "pubsub": "pubsub",
	}
	declared := map[string]map[string]bool{}
	for _, folder := range folders {
		declared[folder] = map[string]bool{}
	}
	for path, text := range sources(t, ".go") {
		folder := filepath.ToSlash(filepath.Dir(path))
		if declared[folder] == nil {
			continue
		}
		for _, m := range declaration.FindAllStringSubmatch(text, -1) {
			declared[folder][m[1]] = true
		}
	}
	name := regexp.MustCompile(`\b(redlatch|rlock|rfairlock|rfencedlock|fence|codec|transport|embedded|pubsub)\.([A-Z]\w*)`)
	found := 0
	for path, text := range sources(t, ".md") {
		for _, m := range name.FindAllStringSubmatch(text, -1) {
			found++
			if !declared[folders[m[1]]][m[2]] {
				t.Errorf("%s names %s, which is not declared", path, m[0])
			}
		}
	}
	require.Greater(t, found, 50, "no names were found: the check itself is broken")
}
