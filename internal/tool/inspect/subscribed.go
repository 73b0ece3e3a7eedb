package inspect

import "github.com/redlatch/redlatch/admin"

// What the output says about the subscription of a waiter.
const (
	SubscribedYes     = "yes"
	SubscribedNo      = "no"
	SubscribedUnknown = "unknown"
)

// Subscribed returns whether a connection is subscribed to a waiter's channel, in a word.
func Subscribed(w *admin.Waiter) string {
	switch {
	case !w.Counted:
		return SubscribedUnknown
	case w.Subscribed:
		return SubscribedYes
	}
	return SubscribedNo
}
