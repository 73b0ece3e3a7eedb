package redlatch

import "github.com/redlatch/redlatch/internal/engine"

// Loss is why a hold was lost. It is an error that wraps [ErrLost]; find it with errors.As in
// what Hold.Err, Unlock, HandOver and Lock return, in the cause of the hold's contexts, and in
// the Err of [Ended] and [Released]:
//
//	var why redlatch.Loss
//	if errors.As(err, &why) {
//		log.Print(string(why)) // such as "the lease was not renewed in time"
//	}
//
// or ask for one with errors.Is. As a string it is a part of a sentence, for logs and metrics.
type Loss string

// The reasons of a loss. What is known is what the client has seen: the first two are times
// that it has counted itself; with the others the server has answered that the owner does not
// hold the lock.
const (
	// LossNotRenewed says that no renewal was acknowledged in time: Redis could not be
	// reached or was too slow, or the process or its machine stood still.
	LossNotRenewed Loss = "the lease was not renewed in time"

	// LossLeaseOver says that the lease of WithLease, which is not renewed, was over.
	LossLeaseOver Loss = "its own lease was over"

	// LossTaken says that the server no longer has the lock, although the connection to it
	// was not lost since it last said that it has: the lock was taken with ForceUnlock, its
	// owner gave it up elsewhere, or its key was deleted, as DEL, FLUSHALL and an eviction do.
	LossTaken Loss = "it was taken by force, or its key was deleted"

	// LossForgotten says that the server no longer has the lock, and that since it last
	// said that it has, a connection was lost or another server became the master: it was
	// restarted without its data, or a replica that never had the lock took over. That
	// the lock was taken or deleted in that time cannot be told from this. A transport
	// that does not tell of lost connections gives LossTaken instead.
	LossForgotten Loss = "the server had forgotten it when the connection was back"
)

// Error says that the lock was lost, and why.
func (l Loss) Error() string { return ErrLost.Error() + ": " + string(l) }

// Unwrap returns ErrLost.
func (l Loss) Unwrap() error { return ErrLost }

// losses are what holds end with.
var losses = engine.Losses{
	NotRenewed: LossNotRenewed, LeaseOver: LossLeaseOver, Taken: LossTaken, Forgotten: LossForgotten,
}
