package redlatch

import (
	"github.com/google/uuid"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/reply"
)

// Owner identifies a holder of a lock: a client, by its UUID, and a number that the client
// gave to one acquisition (in Redisson: a thread id). It is an immutable value; the zero
// Owner stands for none. See [codec.Owner] for its methods.
type Owner = codec.Owner

// NewOwner returns the owner with number n of the client with this id. Any n is allowed, as
// it is in Redisson. It is for rlock.WithOwner.
func NewOwner(id uuid.UUID, n int64) Owner { return codec.NewOwner(id, n) }

// ParseOwner reads the text of an owner, such as "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:57".
// Other spellings than that of Owner.String give [ErrInvalid].
func ParseOwner(text string) (Owner, error) { return codec.ParseOwner(text) }

// NoTTL is the time left of a key that never expires. It is negative.
const NoTTL = reply.NoTTL
