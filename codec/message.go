package codec

const (
	// MessageUnlock is the message that a lock has become free.
	MessageUnlock = "0"
	// MessageWriterLeft is the message that the writer of a read/write lock has left it:
	// readers and writers may try.
	MessageWriterLeft = "1"
)
