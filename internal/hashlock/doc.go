// Package hashlock is what kinds of lock have in common whose key is a hash with a field for
// each owner: the replies of their scripts, renewal, and replication.
package hashlock
