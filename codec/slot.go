package codec

import "github.com/redlatch/redlatch/internal/hashslot"

// Slot returns the hash slot of a key or shard channel in a Redis Cluster, 0 to 16383. It sends
// nothing, and is safe for concurrent use.
//
// Deprecated: it is transport.HashSlot under its former name, for adapters that are older than
// the core.
func Slot(key string) int { return hashslot.Of(key) }
