package codec

// Place is one place in the queue of a fair lock, as Redis has it.
type Place struct {
	// Owner is the owner's text; see [ParseOwner].
	Owner string
	// Deadline is the owner's score as Redis writes it, "" when it has none.
	Deadline string
}

// Beat is what a heartbeat finds in the queue of a fair lock.
type Beat struct {
	// Left is how many milliseconds the lock has left, -1 when it never expires
	// and -2 when it is free.
	Left int64
	// Front is the front of the queue, the next one first.
	Front []Place
	// Missing are those of the process that are not in the queue any more.
	Missing []string
	// Length is how many are queued.
	Length int64
}
