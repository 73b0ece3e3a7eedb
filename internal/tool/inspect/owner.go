package inspect

import (
	"fmt"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/listing"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// ShortOwner names an owner in a few characters: what kind of client it is of, and number.
func ShortOwner(text string) string {
	kind := ClientOf(text)
	if kind.Kind == "unknown" {
		return OwnerNumber(text)
	}
	return kind.Name() + " " + OwnerNumber(text)
}

// OwnerNumber returns the end of the UUID of an owner's client, which differs also where clients
// were made in one moment, and its number.
func OwnerNumber(text string) string {
	bare, writes := listing.Bare(text)
	owner, err := redlatch.ParseOwner(bare)
	if err != nil {
		return sanitize.Word(sanitize.Truncate(text, 24))
	}
	id := owner.Client().String()
	said := fmt.Sprintf("%s:%d", id[len(id)-8:], owner.N())
	if writes {
		said += "w"
	}
	return said
}
