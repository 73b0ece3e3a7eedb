package localqueue

import "github.com/redlatch/redlatch/internal/engine"

var slot = engine.Slot[*Queues]{Make: func(e *engine.Engine) *Queues { return NewQueues(e.ClientID) }}

// Of returns the queues of an engine's client.
func Of(e *engine.Engine) *Queues { return slot.Of(e) }
