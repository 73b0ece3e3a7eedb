package localqueue

import "github.com/redlatch/redlatch/internal/core"

var slot = core.Slot[*Lines]{Make: func(e *core.Engine) *Lines { return NewLines(e.ClientID) }}

// Of returns the lines of an engine's client.
func Of(e *core.Engine) *Lines { return slot.Of(e) }
