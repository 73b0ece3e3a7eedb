// Package failover is a transport to the master that Redis Sentinels name, over
// connections that others make. It hears what every Sentinel says of the master on the
// servers themselves, and drops its connections to a former master at once.
//
//	connected ──word of another master, READONLY, silence──▶ ask ──same──▶ connected
//	    ▲                                                     │
//	    └──────────── dial whom the Sentinels name ◀──another─┘
//
// The right to listen is &__sentinel__:hello. Without it the Sentinels are asked every
// second. One goroutine watches, from the first call or subscription until Close, which
// waits for it.
package failover
