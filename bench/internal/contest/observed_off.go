//go:build !observed

package contest

import "github.com/redlatch/redlatch"

// observed are the options of a client that no module observes; scripts/bench-observed.sh
// compares it with one that both do.
func observed() []redlatch.Option { return nil }
