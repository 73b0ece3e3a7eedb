package inspect

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// redissonVersion is the UUID version of the ids that Redisson's clients have.
const redissonVersion = 4

// Client is what an owner tells of the client that it is of.
type Client struct {
	// Kind is "redlatch", "redisson", or "unknown" for owners that neither makes.
	Kind string `json:"client"`
	// Started is when a client of Redlatch was made, by its own clock.
	Started *time.Time `json:"client_started,omitempty"`
}

// ClientOf reads an owner as it stands in Redis, also that of a write lock.
func ClientOf(text string) Client {
	bare, _ := codec.WriterOf(text)
	owner, err := redlatch.ParseOwner(bare)
	switch {
	case err != nil:
		return Client{Kind: "unknown"}
	case owner.IsRedlatch():
		// A UUID of version 7 begins with the time.
		started := time.Unix(owner.Client().Time().UnixTime()).UTC()
		return Client{Kind: "redlatch", Started: &started}
	case owner.Client().Version() == redissonVersion:
		return Client{Kind: "redisson"}
	}
	return Client{Kind: "unknown"}
}

// String returns the text output.
func (c Client) String() string {
	if c.Started != nil {
		return c.Name() + " since " + c.Started.Format(time.RFC3339)
	}
	return c.Name()
}

// Labelled is String with the client's label, if it has one.
func (c Client) Labelled(label string) string {
	if label == "" {
		return c.String()
	}
	return c.String() + ", label " + sanitize.Word(label)
}

// Name names the client's library, for the text output.
func (c Client) Name() string {
	switch c.Kind {
	case "redlatch":
		return "Redlatch"
	case "redisson":
		return "Redisson"
	}
	return "of unknown kind"
}

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
	bare, writes := codec.WriterOf(text)
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
