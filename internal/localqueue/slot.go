package localqueue

import "github.com/redlatch/redlatch/internal/core"

var slot = core.Slot[*Queues]{Make: func(e *core.Engine) *Queues { return NewQueues(e.ClientID) }}

// Of returns the queues of an engine's client.
func Of(e *core.Engine) *Queues { return slot.Of(e) }
