//go:build !observed

package contest

import "github.com/redlatch/redlatch"

// observed returns no options. scripts/bench-observed.sh compares this build with the observed one.
func observed() []redlatch.Option { return nil }
