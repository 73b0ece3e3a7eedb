package codec

import "strings"

// NameMapper translates lock names between a program and Redis; it is the
// counterpart of Redisson's NameMapper. The lock's key and every key and channel
// derived from it come from the mapped name. Programs that share locks need
// mappers with equal results. Both methods must be pure and safe for concurrent
// use.
type NameMapper interface {
	// Map returns the name that Redis sees for the program's name.
	Map(name string) string

	// Unmap returns the program's name for a name that Redis sees, the reverse
	// of Map.
	Unmap(mapped string) string
}

// PrefixMapper returns a [NameMapper] that puts prefix in front of every name.
// Its Unmap takes the prefix off, and returns a name without it as it is. An
// empty prefix changes nothing.
func PrefixMapper(prefix string) NameMapper { return prefixMapper(prefix) }

type prefixMapper string

func (p prefixMapper) Map(name string) string { return string(p) + name }

func (p prefixMapper) Unmap(mapped string) string { return strings.TrimPrefix(mapped, string(p)) }
