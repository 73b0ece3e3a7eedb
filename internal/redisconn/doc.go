// Package redisconn builds the built-in transports: [NewRedigo] the one to a single
// master, [NewCluster] the one to a cluster. It puts together the command connection, the
// subscription connection, the count of listeners and the wait for replicas. It knows of
// no lock.
package redisconn
