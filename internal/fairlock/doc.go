// Package fairlock is the kind of the fair lock, for the packages whose locks have its queue on
// the server.
package fairlock
