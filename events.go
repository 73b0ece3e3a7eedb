package redlatch

import "time"

// Started says that a call of Lock, TryLock, Resume, Acquire or TryAcquire has begun. One
// [NotAcquired] or [Acquired] follows, or as many Acquired as Locks says, or as many NotAcquired when
// too few replicas have the locks.
type Started struct {
	// Op is "lock", "trylock" or "resume"; of a plain semaphore "acquire" or "try-acquire".
	Op string
	// Name is the lock's name, as the caller gave it; of several the first one's.
	Name string
	// Kind is the lock's kind, such as "plain" or "fair".
	Kind string
	// Locks is 1, or how many plain locks a multi-lock takes with one script.
	Locks int
}

// Attempted says that an attempt to take a lock did not get it, and which owner has it. The attempt
// that gets it is the [Acquired]. Re-entries and resumptions have none.
type Attempted struct {
	// Name is the lock's name, as the caller gave it.
	Name string
	// Kind is the lock's kind, such as "plain" or "fair".
	Kind string
	// Attempt is its number in the call, from 1.
	Attempt int
	// Took is the time until the reply.
	Took time.Duration
	// Holder is the owner that has the lock, the zero Owner when that is not known.
	Holder Owner
	// TTL is what the holder's lease has left, below 0 when it never ends or is not known.
	TTL time.Duration
	// Err is why there was no answer.
	Err error
}

// Queued says that a call waits from now on: it was refused, or other callers of this client
// come first. It comes once in a call, and again with another position when the queue of a
// fair lock had lost the caller's place.
type Queued struct {
	// Name is the lock's name, as the caller gave it.
	Name string
	// Kind is the lock's kind, such as "plain" or "fair".
	Kind string
	// Position is the place in the queue of a fair lock, the next one's being 1. It is 0 for
	// other kinds, which have no queue on the server.
	Position int
}

// Woken says that a call that waits was woken, and asks Redis. One that asks because it has
// waited long enough, see [WithPollCap], was not woken.
type Woken struct {
	// Name is the lock's name, as the caller gave it.
	Name string
	// Kind is the lock's kind, such as "plain" or "fair".
	Kind string
	// By is "message" for one of the lock's channel, "gap" when messages may have been missed,
	// "turn" when another caller of this client has left or passed the lock on.
	By string
}

// Gap says that messages for a waiter may have been missed, because its
// subscription was lost and has been made anew. The waiter asks Redis at once.
type Gap struct {
	// Name is the lock's name, as the caller gave it.
	Name string
	// Kind is the lock's kind, such as "plain" or "fair".
	Kind string
}

// Acquired says that Lock, TryLock or Resume returned a hold, or Acquire or TryAcquire permits.
type Acquired struct {
	// Op is "lock", "trylock" or "resume"; of a plain semaphore "acquire" or "try-acquire".
	Op string
	// Name is the lock's name, as the caller gave it.
	Name string
	// Kind is the lock's kind, such as "plain" or "fair".
	Kind string
	// Owner is the hold's. That of a fair lock may come again, with a later hold.
	Owner Owner
	// Wait is how long the call took.
	Wait time.Duration
	// Attempts is how often Redis was asked for the lock, 0 for re-entries and
	// resumptions.
	Attempts int
	// Reentry is true when a proof was used: the lock was held already.
	Reentry bool
	// Transferred is true when the lock came from another hold of this client, which
	// passed its turn on when it was given up.
	Transferred bool
	// NoHold is true for a plain semaphore, whose permits are no hold: neither Ended nor Released
	// follows.
	NoHold bool
}

// NotAcquired says that Lock, TryLock, Resume, Acquire or TryAcquire returned an error.
type NotAcquired struct {
	// Op is "lock", "trylock" or "resume"; of a plain semaphore "acquire" or "try-acquire".
	Op string
	// Name is the lock's name, as the caller gave it.
	Name string
	// Kind is the lock's kind, such as "plain" or "fair".
	Kind string
	// Wait is how long the call took.
	Wait time.Duration
	// Attempts is how often Redis was asked for the lock.
	Attempts int
	// Err is what the call returned.
	Err error
}

// DoStarted says that Do is about to run its function. The function gets the context that
// the observer returns.
type DoStarted struct {
	// Name is the lock's name, as the caller gave it; of a multi-lock those of its first locks.
	Name string
	// Kind is the lock's kind, "multi" for a multi-lock.
	Kind string
	// Owner is the hold's, the zero Owner of a multi-lock.
	Owner Owner
}

// DoEnded says that the function of Do has ended. The hold's [Ended], if it was not over before, and
// [Released] follow.
type DoEnded struct {
	// Name is the lock's name, as the caller gave it; of a multi-lock those of its first locks.
	Name string
	// Kind is the lock's kind, "multi" for a multi-lock.
	Kind string
	// Owner is the hold's, the zero Owner of a multi-lock.
	Owner Owner
	// Took is for how long the function ran.
	Took time.Duration
	// Err is what it returned.
	Err error
	// Panicked is true when it did not return: it panicked, or ended its goroutine.
	Panicked bool
}

// Ended says that a hold is over. Those left when the client is closed end with
// ErrClosed.
type Ended struct {
	// Name is the lock's name, as the caller gave it.
	Name string
	// Kind is the lock's kind, such as "plain" or "fair".
	Kind string
	// Owner is the hold's.
	Owner Owner
	// Held is how long it was held, from the moment its acquisition was sent.
	Held time.Duration
	// Err is why it ended: nil when it was given up by Unlock or LetExpire, else
	// ErrLost, ErrMaxHold, ErrHandedOver or ErrClosed. Of a loss it is a [Loss], which
	// tells the reason.
	Err error
}

// Released says that Unlock returned for the first time. It follows the hold's
// [Ended].
type Released struct {
	// Name is the lock's name, as the caller gave it.
	Name string
	// Kind is the lock's kind, such as "plain" or "fair".
	Kind string
	// Owner is the hold's.
	Owner Owner
	// Took is how long Unlock took.
	Took time.Duration
	// Err is what Unlock returned.
	Err error
}

// Renewed says how one renewal script went, which covers up to 100 holds.
type Renewed struct {
	// Holds is how many it was for.
	Holds int
	// Lost is how many of them the server no longer had; 0 with an error.
	Lost int
	// Took is the time until the reply.
	Took time.Duration
	// Slack is how much time was left, when the reply came, before the first of the holds that
	// it confirmed would have been lost; 0 when it confirmed none. Of a lease that is renewed
	// in time it is about two thirds of the lease, less the loss margin.
	Slack time.Duration
	// Err is why there was no reply. It is tried again within the leases.
	Err error
}

// Evicted says that this client took a dead waiter out of the queue of a fair lock:
// its channel had no subscriber for longer than a live waiter needs to reconnect.
// See [WithDeadWaiterGrace].
type Evicted struct {
	// Name is the lock's name, as the caller gave it.
	Name string
	// Kind is the lock's kind: "fair".
	Kind string
	// Owner is the waiter's owner as it stands in Redis; see ParseOwner.
	Owner string
	// Absent is for how long no subscriber was known.
	Absent time.Duration
	// IsRedlatch is true for a waiter of this library, false for one of Redisson's.
	IsRedlatch bool
	// WasSubscribed is true when the waiter had been subscribed before.
	WasSubscribed bool
}

// Reconnected says that a connection was made in place of one that was lost. Only
// the built-in transport tells.
type Reconnected struct {
	// Connection is "commands" or "subscriptions".
	Connection string
}
