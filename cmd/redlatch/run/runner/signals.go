package runner

import (
	"os"
	"os/signal"
)

// GuardCommand is the hidden command that runs [Guard].
const GuardCommand = "__guard"

// Signals returns the signals that a command under a lock should get in our
// place, and a function that ends the delivery. A signal that is ignored, as
// under nohup, stays ignored.
func Signals() (<-chan os.Signal, func()) {
	ch := make(chan os.Signal, 8)
	for _, sig := range forwarded {
		if !signal.Ignored(sig) {
			signal.Notify(ch, sig)
		}
	}
	return ch, func() { signal.Stop(ch) }
}
