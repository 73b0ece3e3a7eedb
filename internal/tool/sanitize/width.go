package sanitize

import (
	"strings"

	"github.com/rivo/uniseg"
)

// Width returns how many columns of a terminal a text takes: two for each character of Chinese,
// Japanese and Korean and for most emoji, and none for what joins the character before it.
func Width(text string) int { return uniseg.StringWidth(text) }

// Pad fills a text up with blanks to so many columns.
func Pad(text string, columns int) string {
	return text + strings.Repeat(" ", max(0, columns-Width(text)))
}

// Cut returns the beginning of a text that takes at most so many columns, and the rest.
func Cut(text string, columns int) (begin, rest string) {
	used, state, left := 0, -1, text
	for left != "" {
		_, behind, width, next := uniseg.FirstGraphemeClusterInString(left, state)
		if used+width > columns {
			break
		}
		used, left, state = used+width, behind, next
	}
	return text[:len(text)-len(left)], left
}

// Truncate returns the beginning of a text that takes more than so many columns, with dots in
// place of the rest.
func Truncate(text string, columns int) string {
	if Width(text) <= columns {
		return text
	}
	begin, _ := Cut(text, columns-len(".."))
	return begin + ".."
}
