/*
 * Included by fair.pml and readwrite.pml. Leases, deadlines and naps are relative and fall by one per tick. A tick passes
 * only when no other step is possible, so all other steps take no time.
 */
#include "common.pml"
#define NONE 7
#define LEASE 2
#define POLL 2
#define FOREVER 15
/* Runs a script, whose first message may be lost. */
#define PUBLISHING(script) atomic { if :: drops > 0 -> drop = 1 :: true fi; d_step { script; drop = 0 } }

mtype = { go, stop, call };	/* start, poll or release; give up or die; make an attempt */
mtype turn[C];			/* the client's next action, or 0 */
bit holds[C];			/* the client has the lock */
byte nap[C], calls = CALLS;	/* until the client's next poll; Lock calls left */

/* Renews a hold, or lets a client act. */
inline decide(c) {
	if
	:: HAS_LOCK(c) -> d_step { renew(c) }
	:: holds[c] || nap[c] == 1 -> nap[c] = 0; turn[c] = go
	:: nap[c] > 1 -> nap[c] = nap[c] - (nap[c] < FOREVER)
	:: nap[c] > 0 -> turn[c] = stop
	:: !holds[c] && nap[c] == 0 && calls > 0 && CALLS_AGAIN(c) -> calls--; turn[c] = go
	:: !holds[c] && nap[c] == 0
	fi
}
#define CLOCK \
	active proctype Clock() { byte c; do :: atomic { timeout; d_step { check(); age() } for (c : 0 .. C - 1) { decide(c) } } od }
