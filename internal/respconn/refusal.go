package respconn

import "strings"

// IsFull reports whether a server's error says that it has no room for another connection now.
// It has no code of its own.
func IsFull(text string) bool { return strings.HasPrefix(text, "ERR max number of clients") }
