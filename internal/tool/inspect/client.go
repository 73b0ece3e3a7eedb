package inspect

import (
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/listing"
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
	bare, _ := listing.Bare(text)
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
