package codec

const (
	// MessageUnlock is the message that a lock has become free.
	MessageUnlock = "0"

	// MessageReadUnlock is the message with which a write lock lets all waiting
	// readers in.
	MessageReadUnlock = "1"
)
