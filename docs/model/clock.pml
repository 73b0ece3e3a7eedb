/*
 * Included by fair.pml and readwrite.pml. Leases, deadlines and naps are relative and fall by one per tick. A tick passes
 * only when no other step is possible, so all other steps take no time.
 */

/* Renews a hold, or lets a client act. */
inline decide(c) {
	if
	:: HAS_LOCK(c) -> d_step { renew(c) }
	:: holds[c] || nap[c] == 1 -> nap[c] = 0; turn[c] = go
	:: nap[c] > 1 -> nap[c] = nap[c] - (nap[c] < FOREVER)
	:: nap[c] > 1 -> turn[c] = stop
	:: !holds[c] && nap[c] == 0 && calls > 0 && CALLS_AGAIN(c) -> calls--; turn[c] = go
	:: !holds[c] && nap[c] == 0
	fi
}

active proctype Clock() {
	byte c;
	do :: atomic { timeout; d_step { check(); age() } for (c : 0 .. C - 1) { decide(c) } } od
}
