package inspect

import (
	"encoding/base64"
	"time"
	"unicode/utf8"
)

// Named is a lock's name in JSON, which is UTF-8: of other bytes it shows a sign in place of
// each.
type Named struct {
	// Name is the name.
	Name string `json:"name"`
	// Base64 has the bytes of a name that is no UTF-8, left out for others.
	Base64 string `json:"name_base64,omitempty"`
}

// NameOf returns a name as JSON has it.
func NameOf(name string) Named {
	if utf8.ValidString(name) {
		return Named{Name: name}
	}
	return Named{Name: name, Base64: base64.StdEncoding.EncodeToString([]byte(name))}
}

// Lease is what a lock's lease has left, in JSON.
type Lease struct {
	// TTLMillis is nil when the lock is free or has no lease.
	TTLMillis *int64 `json:"ttl_ms"`
	// NoTTL says that the lock is held and has no lease: it stays until it is released.
	NoTTL bool `json:"no_ttl,omitempty"`
}

// LeaseOf returns the lease of a lock, of which left is left if it is held: redlatch.NoTTL, or
// another negative time, when it has none.
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
