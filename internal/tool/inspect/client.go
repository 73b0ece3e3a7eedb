package inspect

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

const redissonVersion = 4

// Client describes an owner's client as far as the owner reveals it.
type Client struct {
	// Kind is "redlatch", "redisson" or "unknown".
	Kind string `json:"client"`
	// Started is when a Redlatch client was created, by its own clock.
	Started *time.Time `json:"client_started,omitempty"`
}

// ClientOf returns the client of an owner or writer.
func ClientOf(text string) Client {
	bare, _ := protocol.WriterOf(text)
	owner, err := codec.ParseOwner(bare)
	switch {
	case err != nil:
		return Client{Kind: "unknown"}
	case protocol.IsRedlatch(owner):
		// A version 7 UUID begins with the time.
		started := time.Unix(owner.Client().Time().UnixTime()).UTC()
		return Client{Kind: "redlatch", Started: &started}
	case owner.Client().Version() == redissonVersion:
		return Client{Kind: "redisson"}
	}
	return Client{Kind: "unknown"}
}

// String returns the client for text output.
func (c Client) String() string {
	if c.Started != nil {
		return c.Name() + " since " + c.Started.Format(time.RFC3339)
	}
	return c.Name()
}

// Labelled adds the client's label, if any, to String.
func (c Client) Labelled(label string) string {
	if label == "" {
		return c.String()
	}
	return c.String() + ", label " + sanitize.Word(label)
}

// OwnerAnd returns an owner and the label of its client, if any, for text output.
func OwnerAnd(owner, label string) string {
	if label == "" {
		return Shown(owner)
	}
	return sanitize.Line(label) + " (" + Shown(owner) + ")"
}

// Lines returns a sentence for each step.
func (c Circle) Lines() []string {
	lines := make([]string, len(c))
	for i, s := range c {
		held := c[(i+len(c)-1)%len(c)].Lock
		lines[i] = fmt.Sprintf("%s holds %s, waits for %s, held by %s",
			OwnerAnd(s.Waiter, s.WaiterLabel), Shown(held), Shown(s.Lock), OwnerAnd(s.Holder, s.HolderLabel))
	}
	return lines
}

// Name returns the name of the library.
func (c Client) Name() string {
	switch c.Kind {
	case "redlatch":
		return "Redlatch"
	case "redisson":
		return "Redisson"
	}
	return "of unknown kind"
}

// ShortOwner returns the owner's library and OwnerNumber.
func ShortOwner(text string) string {
	kind := ClientOf(text)
	if kind.Kind == "unknown" {
		return OwnerNumber(text)
	}
	return kind.Name() + " " + OwnerNumber(text)
}

// OwnerNumber returns the last digits of an owner's UUID, because the first digits of clients created together are
// equal, and the owner's number.
func OwnerNumber(text string) string {
	bare, writes := protocol.WriterOf(text)
	owner, err := codec.ParseOwner(bare)
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

// Named is a lock's name in JSON.
type Named struct {
	Name   string `json:"name"`
	Base64 string `json:"name_base64,omitempty"`
}

// NameOf returns a name for JSON.
func NameOf(name string) Named { return Named{Name: name, Base64: Base64(name)} }

// Owned is an owner in JSON. A queue may contain any string as an owner.
type Owned struct {
	Owner       string `json:"owner"`
	OwnerBase64 string `json:"owner_base64,omitempty"`
}

// OwnedBy returns an owner for JSON.
func OwnedBy(owner string) Owned { return Owned{Owner: owner, OwnerBase64: Base64(owner)} }

// Shown returns an owner in readable form, with its base64 form if it cannot be an argument.
func Shown(owner string) string {
	if in := Base64(owner); in != "" {
		return sanitize.Word(owner) + " (base64 " + in + ")"
	}
	return sanitize.Word(owner)
}

// Base64 encodes text that cannot be an argument or a JSON string. It returns "" for other text.
func Base64(text string) string {
	if utf8.ValidString(text) && !strings.Contains(text, "\x00") {
		return ""
	}
	return base64.StdEncoding.EncodeToString([]byte(text))
}

// Lease is a remaining lease in JSON.
type Lease struct {
	// TTLMillis is nil for a free lock or a lock without a lease.
	TTLMillis *int64 `json:"ttl_ms"`
	NoTTL     bool   `json:"no_ttl,omitempty"`
}

// LeaseOf returns the lease of a lock. A negative left means no lease.
func LeaseOf(held bool, left time.Duration) Lease {
	switch {
	case !held:
		return Lease{}
	case left < 0:
		return Lease{NoTTL: true}
	}
	ms := left.Milliseconds()
	return Lease{TTLMillis: &ms}
}

// Args quotes names and owners as arguments for a shell. If a terminal cannot show one of them, it encodes all of
// them.
func Args(args ...string) string {
	hidden := func(arg string) bool {
		return Base64(arg) != "" || sanitize.Text(arg) != arg || strings.ContainsAny(arg, "`\n")
	}
	words := make([]string, len(args))
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
		words[i] = sanitize.Arg(arg)
	}
	return dashes + strings.Join(words, " ")
}
