/*
 * Fair lock: the queue on the server, and three clients, each in its own process. CALLS is the number of Lock calls in
 * total. REDISSON is 1 if client 2 runs Redisson, otherwise 0. FAULTS is a set of faults, each of which may occur once:
 * 1 is a death, 2 is a lost attempt or reply or a failed subscription, and 4 is a lost message. No run combines 1
 * and 2: a waiter in doubt starts again, and its process counts anew how long others are absent.
 *
 * Owners have the numbers of their clients, since a client resolves an owner in doubt before it uses a new one.
 */
#define C 3
#define HAS_LOCK(c) (holder == c && holds[c])
#define CALLS_AGAIN(c) (dead != c)
#include "clients.pml"
#define FAIR 3   /* fairLockWaitTimeout, the wait of every owner */
#define KEEP 3   /* for how long a heartbeat keeps a place; its period is one tick */
#define GRACE (BUG == 11 -> 0 : 2)
#define BIT(c) (1 << (c))
#define HAS(set, c) (((set) >> (c)) & 1)
#define JAVA(c) (REDISSON && (c) == 2)
#define SLOW (REDISSON && FAULTS) /* Redisson can miss a message, or queue again behind a dead client */
#define REDLATCH_WAITS (waiting & ~(REDISSON << 2))
#define HEAD_IF_FREE (holder == NONE && qlen > 0 -> q[0] : NONE)

hidden byte no_overlap, fifo, live_waiter_keeps_place, woken_at_once, free_lock_within_poll, dead_waiter_expires,
	dead_waiter_evicted, only_dead_evicted, gave_up_leaves_nothing; /* properties */

byte holder = NONE, ttl, qlen, q[C];
short deadline[C];
byte subs;               /* set of clients with a subscription */
bit due[C];              /* the client's heartbeat is due */
byte listened;           /* subs at the last tick, which heartbeats know */
byte absent[C], watch[C]; /* ticks for which a queued client had no subscription; ticks of the client's wait */
byte dead = NONE, waiting, before[C]; /* set of waiting clients; sets of clients that waited before this one */
bit untold;              /* the first waiter may not have been notified that the lock is free */
byte unused, blocked;    /* ticks for which the free lock has a live or dead first waiter */
byte deaths = HAS(FAULTS, 0), losses = HAS(FAULTS, 1), drops = HAS(FAULTS, 2), drop;
hidden byte j, pos, new, got; /* hidden: used only within a step */
hidden short rep, fall;

inline find(o) { pos = 0; do :: pos < qlen && q[pos] != o -> pos++ :: else -> break od }
inline shift(from, by) { for (i : from .. qlen - 1) { deadline[q[i]] = deadline[q[i]] - (by) } }
inline take_out(at) {
	deadline[q[at]] = 0; absent[q[at]] = 0;
	for (j : at .. C - 2) { q[j] = q[j + 1] }
	q[C - 1] = 0; qlen--
}

inline wake(o) {
	if :: HAS(subs, o) && !drop -> turn[o] = go :: else -> untold = untold || HAS(waiting, o) fi;
	drops = drops - drop; drop = 0
}
inline wake_front() { for (i : 0 .. qlen - 1) { wake(q[i]); WHEN(deadline[q[i]] > 0, break) } }
inline forget(o) {
	waiting = waiting & ~BIT(o);
	for (j : 0 .. C - 1) { before[j] = before[j] & ~BIT(o) }
}

inline prune() {
	do
	:: qlen > 0 && deadline[q[0]] <= 0 && BUG != 1 ->
		CHECK(live_waiter_keeps_place, !HAS(waiting, q[0]) || JAVA(q[0]));
		forget(q[0]); take_out(0); untold = untold || holder == NONE
	:: else -> break
	od
}

/* fair_acquire.lua, tryLockInnerAsync. After a refusal, rep is the reply, and new is the added place, or 0. */
inline acquire(o) {
	prune(); find(o);
	got = (holder == o || holder == NONE && (qlen == 0 || pos == 0 || BUG == 5)); new = 0;
	if
	:: got ->
		WHEN(holder == NONE, WHEN(pos < qlen, take_out(pos)); shift(0, FAIR); untold = 0; unused = 0);
		holder = o; ttl = LEASE
	:: !got && pos < qlen -> rep = ttl
	:: else ->
		rep = (qlen > 0 -> deadline[q[qlen - 1]] : ttl);
		deadline[o] = rep + FAIR; q[qlen] = o; qlen++; new = qlen
	fi
}

/* fair_release.lua, unlockInnerAsync */
inline release(o) {
	prune();
	WHEN(holder == o || BUG == 8, holder = NONE; ttl = 0);
	WHEN(holder == NONE && qlen > 0, wake(q[0]))
}

/* fair_give_up.lua; acquireFailedAsync, which sends no message and, in tryLockAsync (BUG 14), subtracts too much. */
inline give_up(o) {
	find(o);
	WHEN(pos < qlen, shift(pos + 1, (JAVA(o) && BUG == 14 -> 3 * FAIR : FAIR)); take_out(pos));
	WHEN(holder == NONE && JAVA(o), untold = 1; unused = 0);
	WHEN(holder == NONE && !JAVA(o) && BUG != 4, wake_front())
}

/* fair_heartbeat.lua. Process p keeps its own waiter's place, and those of others that had subscriptions. */
inline keep_places(p) {
	for (i : 0 .. qlen - 1) {
		j = q[i];
		WHEN(j == p || watch[p] > 1 && HAS(listened, j) && (i > 0 || holder != NONE),
			deadline[j] = MAX(deadline[j], KEEP + FAIR * i));
		WHEN(i > 0, deadline[j] = MAX(deadline[j], deadline[q[i - 1]] + FAIR))
	}
}

/* fair_evict.lua, if the caller found the first waiter dead, and its deadline was this one. */
inline evict(o, was) {
	WHEN(qlen > 0 && q[0] == o && deadline[o] == was,
		CHECK(only_dead_evicted, !HAS(waiting, o));
		take_out(0); fall = MAX(0, was - ttl - KEEP); shift(0, fall);
		WHEN(holder == NONE && BUG != 6, wake_front()))
}

/* Client c no longer waits, and so its heartbeats end. */
inline end_wait(c) {
	forget(c); before[c] = 0; subs = subs & ~BIT(c);
	turn[c] = 0; nap[c] = 0; due[c] = 0; watch[c] = 0
}

inline answered(c) {
	if
	:: got ->
		CHECK(fifo, ((HAS(waiting, c) -> before[c] : waiting) & waiting) == 0);
		for (i : 0 .. C - 1) { CHECK(no_overlap, !holds[i]) }
		end_wait(c); holds[c] = 1
	:: else ->
		WHEN(!HAS(waiting, c), before[c] = waiting; waiting = waiting | BIT(c));
		if
		:: JAVA(c) -> nap[c] = (rep > 0 -> rep : (rep < 0 -> FOREVER : 1))
		:: !JAVA(c) && BUG == 7 -> nap[c] = FOREVER
		:: else -> nap[c] = (holder == NONE -> 1 : (new > 1 -> POLL : MIN(rep, POLL)))
		fi;
		WHEN(!JAVA(c) && new > 1 && rep - FAIR * (new - 2) < 2 && BUG != 12, due[c] = 1) /* inheritsDeadline */
	fi
}

active [C] proctype Client() {
	byte c = _pid;
idle:
	atomic { turn[c] -> turn[c] = 0; if :: !JAVA(c) -> subs = subs | BIT(c) /* from the pool */ :: true fi }
attempt:
	atomic {
		if
		:: d_step { acquire(c); answered(c) }
		:: losses > 0 && !JAVA(c) -> losses--; d_step { end_wait(c) } goto doubt
		:: deaths > 0 -> deaths--; d_step { acquire(c) } goto die
		fi;
		WHEN(holds[c], if :: goto hold :: goto unlock fi);
		WHEN(HAS(subs, c), goto asleep)
	}
	atomic {
		if
		:: subs = subs | BIT(c); goto attempt
		:: losses > 0 && !JAVA(c) -> losses--; nap[c] = 1
		fi
	}
asleep:
	if
	:: atomic { turn[c] == go -> turn[c] = 0; goto attempt }
	:: atomic { turn[c] == stop -> turn[c] = 0; if :: deaths > 0 -> deaths--; goto die :: d_step { end_wait(c) } fi }
	fi;
	PUBLISHING(WHEN(BUG != 3, give_up(c)));
	goto idle;
doubt: /* engine.Resolve: the call runs or not, then its connection is killed, its lock released and its place given up. */
	if :: d_step { acquire(c) } :: true fi;
	PUBLISHING(release(c));
	PUBLISHING(WHEN(BUG != 2, give_up(c)));
	WHEN(BUG == 10, d_step { acquire(c) });
	if :: goto attempt :: goto idle /* Lock returns ErrUncertain */ fi;
hold:
	atomic { turn[c] -> turn[c] = 0; if :: deaths > 0 -> deaths--; goto die :: true fi }
unlock:
	PUBLISHING(holds[c] = 0; release(c));
	goto idle;
die:
	atomic { end_wait(c); holds[c] = 0; dead = c }
	false
}

/* The reply to a heartbeat, and the subscriber counts, ignored if our own is missing; see package liveness. */
inline look(p) {
	find(p);
	WHEN(pos == qlen || pos == 0 && holder == NONE && BUG != 7, turn[p] = go);
	WHEN(HAS(subs, p) && qlen > 0 && MIN(absent[q[0]], watch[p]) > GRACE && BUG != 13, gone = q[0]; was = deadline[gone]);
	WHEN(HAS(subs, p) && watch[p] > 1 && unused && HEAD_IF_FREE != NONE && q[0] != p, wake(q[0]))
}

active [C] proctype Heart() {
	byte p = _pid - C, gone = NONE;
	short was;
	do
	:: atomic { due[p] && gone == NONE -> due[p] = 0; PUBLISHING(WHEN(BUG != 9, keep_places(p)); look(p)) }
	:: atomic { gone != NONE -> PUBLISHING(evict(gone, was); gone = NONE; was = 0) }
	od
}

/* Checks the properties when no other step is possible. */
inline check() {
	for (i : 0 .. qlen - 1) { CHECK(gave_up_leaves_nothing, HAS(waiting, q[i]) || dead == q[i]) }
	CHECK(gave_up_leaves_nothing, holder == NONE || holds[holder] || dead == holder);
	j = HEAD_IF_FREE;
	unused = (j != NONE && HAS(waiting, j) && REDLATCH_WAITS -> unused + 1 : 0);
	blocked = (j != NONE && !HAS(waiting, j) && waiting -> blocked + 1 : 0);
	CHECK(woken_at_once, j == NONE || !HAS(waiting, j) || untold);
	CHECK(free_lock_within_poll, unused <= (SLOW -> 2 * POLL : POLL));
	CHECK(dead_waiter_expires, blocked <= KEEP + (SLOW -> 2 * FAIR : FAIR));
	for (i : 0 .. C - 1) { CHECK(dead_waiter_evicted, blocked <= 3 || watch[i] < 3) }
}

inline age() {
	WHEN(ttl == 1, holder = NONE; untold = 1);
	ttl = MAX(0, ttl - 1); listened = subs;
	for (i : 0 .. qlen - 1) {
		deadline[q[i]] = MAX(-3, deadline[q[i]] - 1);
		absent[q[i]] = (HAS(subs, q[i]) -> 0 : MIN(3, absent[q[i]] + 1))
	}
	for (i : 0 .. C - 1) { due[i] = HAS(waiting, i) && !JAVA(i); watch[i] = (due[i] -> MIN(3, watch[i] + 1) : 0) }
}

inline renew(c) { ttl = LEASE }
CLOCK
