package codec

import (
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/redlatch/redlatch/internal/limits"
)

const (
	uuidLen = 36
	// ownerLen fits a UUID, the colon and the longest int64.
	ownerLen = uuidLen + 1 + len("-9223372036854775808")
)

// Owner identifies a holder of a lock: a client, by its UUID, and a number that
// the client gave to one acquisition (in Redisson: a thread id). Two owners with
// equal text are the same owner to Redis. Owner is an immutable value; it can be
// compared with == and used as a map key. The zero Owner stands for none.
type Owner struct {
	client uuid.UUID
	n      int64
}

// NewOwner returns the owner with number n of client id. Any n is allowed, also
// zero and negative ones, as it is in Redisson.
func NewOwner(id uuid.UUID, n int64) Owner { return Owner{client: id, n: n} }

// ParseOwner reads what [Owner.String] writes and nothing else: the UUID in 36
// lower-case characters, a colon, and the number in decimal without a plus sign
// or leading zeros. Hence an accepted text equals the String of the result, byte
// for byte. Other texts give an error that wraps redlatch.ErrInvalid.
func ParseOwner(text string) (Owner, error) {
	if len(text) < uuidLen+2 {
		return Owner{}, badOwner(text)
	}
	id, idErr := uuid.Parse(text[:uuidLen])
	n, nErr := strconv.ParseInt(text[uuidLen+1:], 10, 64)
	if idErr != nil || nErr != nil {
		return Owner{}, badOwner(text)
	}
	// The parsers accept more spellings than one, and the colon is not checked
	// yet.
	owner := Owner{client: id, n: n}
	var spelt [ownerLen]byte
	if string(owner.appendTo(spelt[:0])) != text {
		return Owner{}, badOwner(text)
	}
	return owner, nil
}

func badOwner(text string) error {
	return fmt.Errorf("%w: an owner is uuid:number in lower case, not %s", limits.ErrInvalid, limits.Quote(text))
}

// String returns the owner as it stands in Redis, such as
// "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:57". It costs one allocation.
func (o Owner) String() string {
	var buf [ownerLen]byte
	return string(o.appendTo(buf[:0]))
}

// appendTo appends the text of [Owner.String] to dst and returns the result.
func (o Owner) appendTo(dst []byte) []byte {
	dst = hex.AppendEncode(dst, o.client[0:4])
	dst = append(dst, '-')
	dst = hex.AppendEncode(dst, o.client[4:6])
	dst = append(dst, '-')
	dst = hex.AppendEncode(dst, o.client[6:8])
	dst = append(dst, '-')
	dst = hex.AppendEncode(dst, o.client[8:10])
	dst = append(dst, '-')
	dst = hex.AppendEncode(dst, o.client[10:16])
	dst = append(dst, ':')
	return strconv.AppendInt(dst, o.n, 10)
}

// Client returns the UUID of the client that the owner belongs to.
func (o Owner) Client() uuid.UUID { return o.client }

// N returns the owner's number within its client.
func (o Owner) N() int64 { return o.n }

// redlatchVersion is the UUID version of the ids that clients of this library give
// themselves; Redisson's are of version 4.
const redlatchVersion = 7

// IsRedlatch reports whether the owner is one of a client of this library, which its
// UUID tells: of version 7, where Redisson's are of version 4. A client that was
// given an id of another version is taken for one of Redisson's.
func (o Owner) IsRedlatch() bool { return o.client.Version() == redlatchVersion }

// IsZero reports whether o is the zero Owner, which stands for no owner.
func (o Owner) IsZero() bool { return o == Owner{} }

// MarshalText returns the text of [Owner.String]; the error is always nil. With
// [Owner.UnmarshalText] it lets owners travel in JSON and other formats.
func (o Owner) MarshalText() ([]byte, error) {
	return o.appendTo(make([]byte, 0, ownerLen)), nil
}

// UnmarshalText sets o to what [ParseOwner] makes of text. On an error, which
// wraps redlatch.ErrInvalid, o stays as it was.
func (o *Owner) UnmarshalText(text []byte) error {
	parsed, err := ParseOwner(string(text))
	if err != nil {
		return err
	}
	*o = parsed
	return nil
}
