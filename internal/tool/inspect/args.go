package inspect

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"

	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// plain is a text that no shell changes.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,][A-Za-z0-9_./:@%+=,-]*$`)

// Args returns names and owners as the arguments of a command that is pasted into a shell: quoted
// where need be, and all of them in base64 if a terminal cannot show one.
func Args(args ...string) string {
	hidden := func(arg string) bool {
		return Base64(arg) != "" || sanitize.Text(arg) != arg || strings.ContainsAny(arg, "`\n")
	}
	words := slices.Clone(args)
	if slices.ContainsFunc(args, hidden) {
		for i, arg := range args {
			words[i] = base64.StdEncoding.EncodeToString([]byte(arg))
		}
		return "--base64 " + strings.Join(words, " ")
	}
	dashes := ""
	for i, arg := range args {
		if strings.HasPrefix(arg, "-") {
			dashes = "-- "
		}
		if !plain.MatchString(arg) {
			words[i] = sanitize.Quote(arg)
		}
	}
	return dashes + strings.Join(words, " ")
}
