/*
 * Read/write lock: clients 0 and 1 read and client 2 writes in one process. Client 3 is another process that runs
 * Redisson and may die. If OTHER is 0, it does nothing; if 1, it writes; if 2, it reads. CALLS is the number of Lock
 * calls in total. One message may be lost. Leases and naps are relative and fall by one per tick. A tick passes only
 * when no other step is possible, so all other steps take no time.
 */
#include "common.pml"
#define C 4
#define NONE 7
#define LEASE 2
#define POLL 2
#define PATIENCE 1
#define BURST 1
#define READS(c) (!((c) == 2 || (c) == 3 && OTHER == 1))
#define EACH(steps) for (i : 0 .. C - 1) { steps }
hidden byte writer_alone, dead_reader_expires, not_passed_by_readers, gave_up_leaves_nothing, woken_at_once,
	free_lock_within_poll; /* properties */

byte ttl, writer = NONE;     /* ttl 0: the lock is free; otherwise no writer: it is read-locked */
bit fields[C];               /* the lock has the reader's field */
byte leases[C];              /* TTL of the key of the reader's hold */
bit subs[C], msgs[C];        /* the client has a subscription, an unread message */
bit holds[C], waits[C], died;
byte nap[C];                 /* until the next poll */
mtype = { go, stop, die };   /* start, poll or release; give up; die */
mtype turn[C];               /* the client's next action, or 0 */
byte leader = NONE, waiting = NONE, burst, inside, drained; /* queue.leader, writer, burst, reading, drained */
bit parked[C], asked[C], signal[C];                         /* caller.parked, asked, wake */
byte passed;                 /* readers admitted beside others of their process while the writer waits */
byte unused; bit untold;     /* ticks for which clients wait for a free lock; they may not have been notified */
byte deaths = 1, drops = 1, drop, calls = CALLS;
hidden byte most, got, held; /* hidden: used only within a step */

inline longest() { most = 0; EACH(most = MAX(most, leases[i])) }
inline delete() { EACH(fields[i] = 0) ttl = 0; writer = NONE }
inline publish() { EACH(msgs[i] = msgs[i] || subs[i] && !drop) untold = untold || drop; drops = drops - drop; drop = 0 }

/* read_acquire.lua, write_acquire.lua */
inline acquire(c) {
	got = (ttl == 0 || writer == NONE && (READS(c) || BUG == 1) || READS(c) && BUG == 2);
	WHEN(got && !READS(c), writer = c);
	WHEN(got && READS(c), fields[c] = 1; leases[c] = LEASE);
	WHEN(got, ttl = LEASE; untold = 0)
}
/* read_release.lua, write_release.lua. A dead reader keeps its field, but its lease ends. */
inline release(c) {
	got = fields[c]; fields[c] = 0; leases[c] = 0; longest();
	WHEN(got && BUG == 4, EACH(WHEN(fields[i], most = LEASE)));
	WHEN(got, ttl = most);
	WHEN(got && most == 0, delete(); WHEN(BUG != 5, publish()));
	WHEN(writer == c, delete(); publish())
}
/* queue.holdsBack */
inline holds_back() {
	held = (waiting != NONE && burst >= BURST && BUG != 6);
	WHEN(held && inside == 0 && drained >= PATIENCE, burst = 0; held = 0)
}
inline promote() {
	WHEN(leader == NONE && (parked[0] || parked[1]), holds_back());
	EACH(WHEN(leader == NONE && parked[i] && (!held || asked[i]), leader = i; parked[i] = 0; signal[i] = 1))
}
inline wake_readers() { EACH(signal[i] = signal[i] || parked[i] || leader == i; parked[i] = 0) }
/* caller.begin */
inline begin(c) {
	held = 0;
	WHEN(c < 2 && leader == NONE, holds_back());
	WHEN(c < 2 && !held && leader == NONE, burst = MIN(BURST, burst + 1));
	WHEN(c < 2 && (held || leader != NONE), parked[c] = 1; waits[c] = 1; nap[c] = PATIENCE)
}
inline refused(c) {
	waits[c] = 1; asked[c] = 1;
	nap[c] = (BUG == 3 -> 99 : MAX(1, MIN(POLL, ttl)));
	WHEN(c < 2 && leader == NONE, leader = c; parked[c] = 0);
	WHEN(c < 2 && leader != c, parked[c] = 1; nap[c] = 4 * nap[c]);
	WHEN(c == 2 && waiting == NONE, waiting = c; drained = 0; burst = 0; passed = 0)
}
inline end_wait(c) { waits[c] = 0; nap[c] = 0; subs[c] = 0; msgs[c] = 0; signal[c] = 0; asked[c] = 0; parked[c] = 0 }
inline granted(c) {
	EACH(CHECK(writer_alone, i == c || !holds[i] || READS(c) && READS(i)));
	end_wait(c); holds[c] = 1; WHEN(c == 2, waiting = NONE);
	WHEN(c < 2 && waiting != NONE && inside > 0, passed++; CHECK(not_passed_by_readers, passed <= BURST + 1));
	WHEN(c < 2, inside++);
	WHEN(c < 2 && leader != NONE, leader = (leader == c -> NONE : leader); burst = BURST; WHEN(BUG != 7, wake_readers()))
}
/* readTurn.Pass, writeTurn.Pass */
inline pass(c) {
	WHEN(c == 2, wake_readers());
	WHEN(c < 2, inside--); WHEN(c < 2 && inside == 0, drained = 0; signal[2] = signal[2] || waiting != NONE)
}
/* caller.Leave */
inline give_up(c) {
	parked[c] = 0;
	WHEN(leader == c && BUG != 9, leader = NONE);
	WHEN(c == 2, waiting = NONE);
	WHEN(c < 3, promote());
	WHEN(c == 2 && leader != NONE, signal[leader] = 1);
	end_wait(c)
}

proctype Client(byte c) {
idle:
	atomic { turn[c] == go -> turn[c] = 0; begin(c); WHEN(parked[c], goto asleep) }
attempt:
	atomic {
		d_step { acquire(c); if :: got -> granted(c) :: else -> refused(c) fi; got = 0 }
		WHEN(holds[c], goto hold);
		WHEN(subs[c] || c < 2 && leader != c, goto asleep)
	}
	subs[c] = 1;
	WHEN(BUG != 10, goto attempt);
asleep:
	if
	:: atomic { turn[c] != die && (msgs[c] || signal[c]) -> msgs[c] = 0; signal[c] = 0; goto attempt }
	:: atomic { turn[c] == go -> turn[c] = 0; WHEN(asked[c], goto attempt); promote(); nap[c] = PATIENCE; goto asleep }
	:: atomic { turn[c] == stop -> turn[c] = 0; give_up(c); goto idle }
	:: turn[c] == die -> goto dead
	fi;
hold:
	atomic { turn[c] -> WHEN(turn[c] == die, goto dead); turn[c] = 0 }
	atomic { if :: drops > 0 -> drop = 1 :: true fi; d_step { holds[c] = 0; release(c); drop = 0 } }
	atomic { pass(c); goto idle }
dead:
	atomic { turn[c] = 0; holds[c] = 0; end_wait(c); died = 1 } false
}

/* Checks the properties when no other step is possible. */
inline check() {
	longest();
	CHECK(gave_up_leaves_nothing, writer == NONE || holds[writer] || died && writer == 3);
	EACH(CHECK(gave_up_leaves_nothing, !fields[i] || holds[i] || died && i == 3);
		CHECK(gave_up_leaves_nothing, waits[i] || i != leader && i != waiting && !parked[i] && !subs[i]));
	CHECK(dead_reader_expires, (ttl == 0 || writer != NONE || most > 0) && (!died || leases[3] < LEASE));
	unused = (ttl == 0 && (waits[0] || waits[1] || waits[2] || waits[3]) -> unused + 1 : 0);
	CHECK(woken_at_once, unused == 0 || untold);
	CHECK(free_lock_within_poll, unused <= POLL)
}
inline age() {
	WHEN(ttl == 1, delete(); untold = 1);
	ttl = MAX(0, ttl - 1);
	EACH(leases[i] = MAX(0, leases[i] - 1)); drained = MIN(PATIENCE, drained + 1);
	WHEN(waiting != NONE, burst = BURST) /* burstTime is over */
}
inline renew(c) {
	WHEN(READS(c), EACH(WHEN(i == c || BUG == 8 && fields[i], leases[i] = LEASE)));
	ttl = LEASE
}
/* Renews a hold, or lets a client act. */
inline decide(c) {
	if
	:: holds[c] -> d_step { renew(c) }
	:: holds[c] || nap[c] == 1 -> nap[c] = 0; turn[c] = go
	:: nap[c] > 1 -> nap[c]--
	:: nap[c] > 1 -> turn[c] = stop
	:: c == 3 && deaths > 0 && (holds[c] || nap[c] > 0) -> deaths--; turn[c] = die
	:: !holds[c] && nap[c] == 0 && calls > 0 && (c < 3 || OTHER && !died) -> calls--; turn[c] = go
	:: !holds[c] && nap[c] == 0
	fi
}

active proctype Clock() {
	do :: atomic { timeout; d_step { check(); age() } decide(0); decide(1); decide(2); decide(3) } od
}
init { atomic { run Client(0); run Client(1); run Client(2); run Client(3) } }
