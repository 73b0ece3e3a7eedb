package faketransport

import (
	"sync"
	"time"

	"github.com/redlatch/redlatch/transport"
)

// Distant is a transport to a server whose replies take their time.
type Distant struct {
	transport.Transport

	replies sync.WaitGroup
}

// Start is part of transport.Transport.
func (d *Distant) Start(call *transport.Call, done transport.Done) {
	d.Transport.Start(call, func(reply any, err error) {
		d.replies.Go(func() {
			time.Sleep(50 * time.Millisecond)
			done(reply, err)
		})
	})
}

// Wait waits for the replies that are under way.
func (d *Distant) Wait() { d.replies.Wait() }
