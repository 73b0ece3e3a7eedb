// Package plainlock is the kind of the plain lock, for the packages whose locks are taken one
// holder at a time, without a queue on the server: those of rlock, and those with tokens.
package plainlock
