package main

import (
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/listing"
	"github.com/redlatch/redlatch/internal/sanitize"
)

// redissonVersion is the UUID version of the ids that Redisson's clients have.
const redissonVersion = 4

// client is what an owner tells of the client that it is of.
type client struct {
	// Kind is "redlatch", "redisson", or "unknown" for owners that neither makes.
	Kind string `json:"client"`
	// Started is when a client of Redlatch was made, by its own clock.
	Started *time.Time `json:"client_started,omitempty"`
}

// clientOf reads an owner as it stands in Redis, also that of a write lock.
func clientOf(text string) client {
	bare, _ := listing.Bare(text)
	owner, err := codec.ParseOwner(bare)
	switch {
	case err != nil:
		return client{Kind: "unknown"}
	case owner.Native():
		started := owner.ClientStarted().UTC()
		return client{Kind: "redlatch", Started: &started}
	case owner.Client().Version() == redissonVersion:
		return client{Kind: "redisson"}
	}
	return client{Kind: "unknown"}
}

// String tells people.
func (c client) String() string {
	if c.Started != nil {
		return c.name() + " since " + c.Started.Format(time.RFC3339)
	}
	return c.name()
}

// labelled is String with the client's label, if it has one.
func (c client) labelled(label string) string {
	if label == "" {
		return c.String()
	}
	return c.String() + ", label " + sanitize.Word(label)
}

func (c client) name() string {
	switch c.Kind {
	case "redlatch":
		return "Redlatch"
	case "redisson":
		return "Redisson"
	}
	return "of unknown kind"
}
