package label

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// prefix is what the keys of labels begin with.
const prefix = "redlatch:label:"

// MaxLen is the length of the longest label, in bytes.
const MaxLen = 200

// Key returns the key of a client's label.
func Key(client uuid.UUID) string { return prefix + client.String() }

// Check returns an error that says why a text cannot be a label: it is too long, or
// not one line of printable UTF-8.
func Check(text string) error {
	switch {
	case len(text) > MaxLen:
		return fmt.Errorf("a label of %d bytes, of which there may be %d", len(text), MaxLen)
	case !utf8.ValidString(text):
		return fmt.Errorf("the label %q is not valid UTF-8", text)
	case strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("the label %q has characters that cannot be printed on one line", text)
	}
	return nil
}
