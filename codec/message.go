package codec

const (
	// MessageUnlock is the message that a lock has become free.
	MessageUnlock = "0"
	// MessageWriterLeft is the message that the writer of a read/write lock has left it:
	// readers and writers may try.
	MessageWriterLeft = "1"
	// MessageOpened is the message that a count-down latch has opened.
	MessageOpened = "0"
	// MessageClosed is the message that the count of a count-down latch was set, or deleted.
	MessageClosed = "1"
)
