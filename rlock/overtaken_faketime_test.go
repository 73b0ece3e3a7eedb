package rlock_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// overtaken is a transport whose first call of a script is overtaken by what is called in the next moment.
type overtaken struct {
	transport.Transport

	script string
	once   sync.Once
	late   sync.WaitGroup
}

// Start is part of transport.Transport.
func (o *overtaken) Start(call *transport.Call, done transport.Done) {
	waits := false
	if call.Name() == o.script {
		o.once.Do(func() { waits = true })
	}
	if !waits {
		o.Transport.Start(call, done)
		return
	}
	o.late.Go(func() {
		time.Sleep(10 * time.Millisecond)
		o.Transport.Start(call, done)
	})
}

// A release for an owner that others use, too, comes to the server behind an attempt that was filled
// after it.
func TestAReleaseForAnOwnerThatIsOvertakenLeavesTheOtherItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, other := inBubble(t)
		tr := &overtaken{Transport: redigoTransport(srv), script: "release_shared"}
		defer tr.late.Wait()
		l, owner := rlock.New(overTransport(t, tr), "job"), redlatch.NewOwner(uuid.New(), 1)
		first := await(t.Context(), l, rlock.WithOwner(owner)).acquired(t, soon)
		unlocked := make(chan error, 1)
		go func() { unlocked <- first.Unlock() }()
		synctest.Wait() // it is on its way
		hold := await(t.Context(), l, rlock.WithOwner(owner), rlock.WithLease(time.Hour)).acquired(t, soon)
		require.NoError(t, <-unlocked)
		requireKept(t, hold, other)
	})
}
