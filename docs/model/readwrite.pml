/*
 * Read/write lock: clients 0 and 1 read and client 2 writes in one process. Client 3 is another process that runs
 * Redisson and may die. If OTHER is 0, it does nothing; if 1, it writes; if 2, it reads. CALLS is the number of Lock
 * calls in total. One message may be lost. Patience is one tick, and so is a burst one reader.
 */
#define C 4
#define HAS_LOCK(c) (holds[c])
#define CALLS_AGAIN(c) (c < 3 || OTHER && !died)
#include "clients.pml"
#define READS(c) (!((c) == 2 || (c) == 3 && OTHER == 1))
#define INSIDE (holds[0] + holds[1])
#define EACH(steps) for (i : 0 .. C - 1) { steps }
hidden byte writer_alone, dead_reader_expires, not_passed_by_readers, gave_up_leaves_nothing, woken_at_once,
	free_lock_within_poll; /* properties */

byte ttl, writer = NONE;     /* ttl 0: the lock is free; otherwise no writer: it is read-locked */
byte leases[C];              /* TTL of the key of the reader's hold */
bit subs[C], waits[C], died;
byte leader = NONE;          /* queue.leader */
bit burst, drained;          /* the burst, and patience after the last reader, are over */
bit parked[C], asked[C];     /* caller.parked, asked */
byte passed;                 /* readers admitted beside others of their process while the writer waits */
byte unused; bit untold;     /* ticks for which clients wait for a free lock; they may not have been notified */
byte drops = 1, drop;
hidden byte most, got, held; /* hidden: used only within a step */

inline longest() { most = 0; EACH(most = MAX(most, leases[i])) }
/* read_acquire.lua, write_acquire.lua */
inline acquire(c) {
	got = (ttl == 0 || writer == NONE && (READS(c) || BUG == 1) || READS(c) && BUG == 2);
	WHEN(got && !READS(c), writer = c);
	WHEN(got && READS(c), leases[c] = LEASE);
	WHEN(got, ttl = LEASE; untold = 0)
}
/* read_release.lua, write_release.lua */
inline release(c) {
	got = (leases[c] > 0); leases[c] = 0; longest();
	WHEN(got, ttl = (BUG == 4 && most -> LEASE : most));
	WHEN(got && most == 0 || writer == c,
		ttl = 0; writer = NONE; EACH(WHEN(subs[i] && !drop && BUG != 5, turn[i] = call));
		untold = untold || drop; drops = drops - drop; drop = 0)
}
/* queue.holdsBack */
inline holds_back() {
	held = (waits[2] && burst && BUG != 6);
	WHEN(held && !INSIDE && drained, burst = 0; held = 0)
}
inline promote() {
	WHEN(leader == NONE && (parked[0] || parked[1]), holds_back());
	EACH(WHEN(leader == NONE && parked[i] && (!held || asked[i]), leader = i; parked[i] = 0; turn[i] = call))
}
inline wake_readers() { EACH(WHEN(parked[i] || leader == i, turn[i] = call); parked[i] = 0) }
/* caller.begin */
inline begin(c) {
	held = 0;
	WHEN(c < 2 && leader == NONE, holds_back(); burst = 1);
	WHEN(c < 2 && (held || leader != NONE), parked[c] = 1; waits[c] = 1; nap[c] = 1)
}
inline refused(c) {
	WHEN(c == 2 && !waits[2], drained = 0; burst = 0; passed = 0);
	waits[c] = 1; asked[c] = 1;
	nap[c] = (BUG == 3 -> FOREVER : MAX(1, MIN(POLL, ttl)));
	WHEN(c < 2 && leader == NONE, leader = c; parked[c] = 0);
	WHEN(c < 2 && leader != c, parked[c] = 1; nap[c] = 4 * nap[c])
}
inline end_wait(c) { waits[c] = 0; nap[c] = 0; subs[c] = 0; turn[c] = 0; asked[c] = 0; parked[c] = 0 }
inline granted(c) {
	EACH(CHECK(writer_alone, i == c || !holds[i] || READS(c) && READS(i)));
	end_wait(c);
	WHEN(c < 2 && waits[2] && INSIDE, passed++; CHECK(not_passed_by_readers, passed <= 2));
	holds[c] = 1;
	WHEN(c < 2 && leader != NONE, leader = (leader == c -> NONE : leader); burst = 1; WHEN(BUG != 7, wake_readers()))
}
/* caller.Leave */
inline give_up(c) {
	end_wait(c);
	WHEN(leader == c && BUG != 9, leader = NONE);
	WHEN(c < 3, promote());
	WHEN(c == 2 && leader != NONE, turn[leader] = call)
}

active [C] proctype Client() {
	byte c = _pid;
idle:
	atomic { turn[c] -> turn[c] = 0; begin(c); WHEN(parked[c], goto asleep) }
attempt:
	atomic {
		d_step { acquire(c); if :: got -> granted(c) :: else -> refused(c) fi; got = 0 }
		WHEN(holds[c], if :: goto hold :: goto unlock fi);
		WHEN(subs[c] || c < 2 && leader != c, goto asleep)
	}
	subs[c] = 1;
	WHEN(BUG != 10, goto attempt);
asleep:
	if
	:: atomic { turn[c] == call || turn[c] == go && asked[c] -> turn[c] = 0; goto attempt }
	:: atomic { turn[c] == go && !asked[c] -> turn[c] = 0; promote(); nap[c] = 1; goto asleep }
	:: atomic { turn[c] == stop -> give_up(c); goto idle }
	:: turn[c] == stop && c == 3 -> goto dead
	fi;
hold:
	atomic { turn[c] -> WHEN(c == 3, if :: goto dead :: true fi); turn[c] = 0 }
unlock:
	PUBLISHING(holds[c] = 0; release(c));
	/* readTurn.Pass, writeTurn.Pass */
	atomic { WHEN(c == 2, wake_readers()); WHEN(c < 2 && !INSIDE && waits[2], turn[2] = call); goto idle }
dead:
	atomic { holds[c] = 0; end_wait(c); died = 1 } false
}

/* Checks the properties when no other step is possible. */
inline check() {
	longest();
	CHECK(gave_up_leaves_nothing, writer == NONE || holds[writer] || died && writer == 3);
	EACH(CHECK(gave_up_leaves_nothing, !leases[i] || holds[i] || died && i == 3);
		CHECK(gave_up_leaves_nothing, waits[i] || i != leader && !parked[i] && !subs[i]));
	CHECK(dead_reader_expires, (ttl == 0 || writer != NONE || most > 0) && (!died || leases[3] < LEASE));
	unused = (ttl == 0 && (waits[0] || waits[1] || waits[2] || waits[3]) -> unused + 1 : 0);
	CHECK(woken_at_once, unused == 0 || untold);
	CHECK(free_lock_within_poll, unused <= POLL)
}
inline age() {
	WHEN(ttl == 1, writer = NONE; untold = 1);
	ttl = MAX(0, ttl - 1);
	EACH(leases[i] = MAX(0, leases[i] - 1)); drained = !INSIDE;
	burst = burst || waits[2] /* burstTime is over */
}

inline renew(c) {
	WHEN(READS(c), EACH(WHEN(i == c || BUG == 8 && leases[i], leases[i] = LEASE)));
	ttl = LEASE
}
CLOCK
