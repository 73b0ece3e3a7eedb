package codec

// MessageUnlock is the message that a lock has become free.
const MessageUnlock = "0"
