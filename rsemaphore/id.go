package rsemaphore

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/limits"
)

const (
	idBytes = 16
	idChars = 2 * idBytes
)

// newIDs returns n ids, as a hold has them: in hexadecimal, with commas between them.
func newIDs(n int64) string {
	raw := make([]byte, n*idBytes)
	_, _ = rand.Read(raw) // it never fails
	ids := make([]byte, 0, n*(idChars+1))
	for ; len(raw) > 0; raw = raw[idBytes:] {
		if len(ids) > 0 {
			ids = append(ids, ',')
		}
		ids = hex.AppendEncode(ids, raw[:idBytes])
	}
	return string(ids)
}

// rawIDs returns the bytes of ids of a hold, one behind the other.
func rawIDs(ids any) string {
	text, _ := ids.(string) // always one
	digits := 2 * int(sizeOf(ids))
	raw := make([]byte, 0, (len(text)+1)/(digits+1)*digits/2)
	for len(text) >= digits {
		raw, _ = hex.AppendDecode(raw, []byte(text[:digits])) // it is hexadecimal
		text = text[min(digits+1, len(text)):]
	}
	return string(raw)
}

// sizeOf returns how many bytes each of these ids has, at least 1: a script steps by it. Permits that
// were made by hand may have longer or shorter ids than others.
func sizeOf(ids any) int64 {
	text, _ := ids.(string) // always one
	if i := strings.IndexByte(text, ','); i >= 0 {
		text = text[:i]
	}
	return int64(max(1, len(text)/2))
}

// parseIDs checks ids from elsewhere, and returns their bytes, one behind the other.
func parseIDs(ids []string) (string, error) {
	if len(ids) == 0 || len(ids) > MaxPermits {
		return "", fmt.Errorf("%w: %d ids of permits, not 1 to %d", redlatch.ErrInvalid, len(ids), MaxPermits)
	}
	for _, id := range ids {
		if raw, err := hex.DecodeString(id); err != nil || len(raw) != idBytes {
			return "", fmt.Errorf("%w: the id of a permit is %d hexadecimal digits, not %s", redlatch.ErrInvalid, idChars, limits.Quote(id))
		}
	}
	return rawIDs(strings.Join(ids, ",")), nil
}
