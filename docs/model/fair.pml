/*
 * Fair lock: the queue on the server, and three clients, each in its own process. CALLS is the number of Lock calls in
 * total. REDISSON is 1 if client 2 runs Redisson, otherwise 0. FAULTS is a set of faults, each of which may occur once:
 * 1 is a death, 2 is a lost attempt or reply or a failed subscription, and 4 is a lost message. No run combines 1
 * and 2: a waiter in doubt queues again with a new owner, and its process counts anew how long others are absent.
 *
 * Clients and their owners are numbered 0 to 2. SPARE is the owner that a client uses after an attempt in doubt.
 * Leases, deadlines and naps are relative and fall by one per tick. A tick passes only when no other step is possible,
 * so all other steps take no time.
 */
#include "common.pml"
#define C 3
#define O 4      /* number of owners */
#define SPARE 3
#define NONE 7
#define LEASE 2
#define POLL 2
#define FAIR 3   /* fairLockWaitTimeout, the wait of every owner */
#define KEEP 3   /* for how long a heartbeat keeps a place; its period is one tick */
#define FOREVER 15
#define BIT(o) (1 << (o))
#define HAS(set, o) (((set) >> (o)) & 1)
#define CLIENT(o) ((o) == SPARE -> spare : (o))
#define JAVA(o) (REDISSON && (o) == 2)
#define OURS(p, o) (own[p] == (o) && HAS(waiting, o))
#define GRACE (BUG == 11 -> 0 : 2)
#define REDLATCH_WAITS (waiting & ~(REDISSON << 2))
#define AT(p, o) ((p) * O + (o))
#define HEAD_IF_FREE (holder == NONE && qlen > 0 -> q[0] : NONE)
/* Runs a script, whose first message may be lost. */
#define PUBLISHING(script) atomic { if :: drops > 0 -> drop = 1 :: true fi; d_step { script; drop = 0 } }

hidden byte no_overlap, fifo, live_waiter_keeps_place, woken_at_once, free_lock_within_poll, dead_waiter_expires,
	dead_waiter_evicted, only_dead_evicted, gave_up_leaves_nothing; /* properties */

byte holder = NONE, ttl, qlen, q[O];
short deadline[O];
byte subs, msgs;         /* sets of owners: with a subscriber, with an unread message */
byte own[C];             /* the client's owner */
byte left[C], nap[C];    /* time left of its hold, until its next poll */
mtype = { go, stop };    /* start, poll or release; give up or die */
mtype turn[C];           /* the client's next action, or 0 */
bit called[C];           /* by a heartbeat */
byte spare = NONE;       /* the client that used SPARE */
byte doubt = NONE;       /* owner to be resolved */
bit pending;             /* its lost call may still run */
bit due[C];              /* a heartbeat is due */
byte place[C * O], absent[C * O], listening[C], seen[C] = NONE; /* liveness.Detector, by process and owner */
byte died, waiting, before[O]; /* sets: dead clients, waiting owners, owners that waited before this one */
bit untold;              /* the first waiter may not have been notified that the lock is free */
byte unused, blocked;    /* ticks for which the free lock has a live or dead first waiter */
byte x, deaths = HAS(FAULTS, 0), losses = HAS(FAULTS, 1), drops = HAS(FAULTS, 2), drop, calls = CALLS;
hidden byte j, pos, new, got; /* hidden: used only within a step */
hidden short rep, w, dl, ahead, old, moved, fall;

inline find(o) { pos = 0; do :: pos < qlen && q[pos] != o -> pos++ :: else -> break od }
inline shift(from, by) { for (i : from .. qlen - 1) { deadline[q[i]] = deadline[q[i]] - (by) } }
inline take_out(at) {
	deadline[q[at]] = 0;
	for (j : at .. O - 2) { q[j] = q[j + 1] }
	q[O - 1] = 0; qlen--
}

inline wake(o) {
	if :: HAS(subs, o) && !drop -> msgs = msgs | BIT(o) :: else -> untold = untold || HAS(waiting, o) fi;
	drops = drops - drop; drop = 0
}
inline wake_front() { for (i : 0 .. qlen - 1) { wake(q[i]); WHEN(deadline[q[i]] > 0, break) } }
inline forget(o) {
	waiting = waiting & ~BIT(o);
	for (j : 0 .. O - 1) { before[j] = before[j] & ~BIT(o) }
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

/* fair_heartbeat.lua of process p. It knows the waits of its own waiters and of waiters seen earlier. */
inline keep_places(p) {
	ahead = 0;
	for (i : 0 .. qlen - 1) {
		j = q[i]; w = FAIR; dl = deadline[j];
		WHEN(i > 0 && !OURS(p, j) && place[AT(p, j)] == 0, w = MAX(0, MIN(FAIR, dl - old)));
		WHEN(i > 0 && moved > old, dl = MAX(dl, moved + w));
		if
		:: OURS(p, j) || HAS(listening[p], j) && i > 0 -> dl = MAX(dl, KEEP + ahead)
		:: !OURS(p, j) && HAS(listening[p], j) && i == 0 && holder != NONE -> dl = MAX(dl, FAIR)
		:: else
		fi;
		ahead = ahead + w; old = deadline[j]; moved = dl; deadline[j] = dl
	}
}

/* fair_evict.lua. gone holds the first n owners, which the caller found dead, and was holds their deadlines. */
inline evict(n) {
	fall = 0; w = 0;
	do
	:: w < n && qlen > 0 && q[0] == gone[w] && deadline[q[0]] == was[w] ->
		CHECK(only_dead_evicted, !HAS(waiting, q[0]));
		fall = fall + MAX(0, was[w] - fall - ttl - KEEP);
		take_out(0); w++
	:: else -> break
	od;
	for (i : 0 .. qlen - 1) { WHEN(deadline[q[i]] > 0, fall = MIN(fall, MAX(0, deadline[q[i]] - ttl - KEEP))) }
	shift(0, fall);
	WHEN(w > 0 && holder == NONE && BUG != 6, wake_front())
}

/* Client c no longer waits, and so its heartbeats end. */
inline end_wait(c) {
	for (j : 0 .. O - 1) { absent[AT(c, j)] = 0; place[AT(c, j)] = 0 }
	forget(own[c]); before[own[c]] = 0;
	subs = subs & ~BIT(own[c]); msgs = msgs & ~BIT(own[c]);
	nap[c] = 0; called[c] = 0; due[c] = 0; listening[c] = 0; seen[c] = NONE;
}

inline answered(c) {
	if
	:: got ->
		CHECK(fifo, ((HAS(waiting, own[c]) -> before[own[c]] : waiting) & waiting) == 0);
		for (i : 0 .. C - 1) { CHECK(no_overlap, i == c || left[i] == 0) }
		end_wait(c); left[c] = LEASE
	:: else ->
		WHEN(!HAS(waiting, own[c]), before[own[c]] = waiting; waiting = waiting | BIT(own[c]));
		if
		:: JAVA(c) -> nap[c] = (rep > 0 -> rep : (rep < 0 -> FOREVER : 1))
		:: !JAVA(c) && BUG == 7 -> nap[c] = FOREVER
		:: else -> nap[c] = (holder == NONE -> 1 : (new > 1 -> POLL : MIN(rep, POLL)))
		fi;
		WHEN(!JAVA(c) && new > 1 && rep - FAIR * (new - 2) < 2 && BUG != 12, due[c] = 1) /* inheritsDeadline */
	fi
}

proctype Client(byte c) {
	bit asked; /* it was refused, and has tried to subscribe */
idle:
	atomic {
		turn[c] && doubt != c -> turn[c] = 0; asked = 0;
		d_step { for (i : 0 .. C - 1) { absent[AT(i, c)] = 0; place[AT(i, c)] = 0 } own[c] = c } /* a new owner */
		if :: !JAVA(c) -> subs = subs | BIT(c) /* from the pool */ :: true fi
	}
attempt:
	atomic {
		if
		:: d_step { acquire(own[c]); answered(c) }
		:: losses > 0 && !JAVA(c) ->
			losses--;
			if :: d_step { acquire(own[c]) } :: pending = 1 :: true fi;
			d_step { end_wait(c); doubt = own[c] }
			if
			:: asked -> spare = c; own[c] = SPARE; subs = subs | BIT(SPARE); goto attempt
			:: else -> goto idle /* Lock returns ErrUncertain */
			fi
		:: deaths > 0 -> deaths--; d_step { acquire(own[c]) } goto die
		fi;
		WHEN(left[c] > 0, if :: goto hold :: goto unlock fi);
		asked = 1;
		WHEN(HAS(subs, own[c]), goto asleep)
	}
	atomic {
		if
		:: subs = subs | BIT(own[c]); goto attempt
		:: losses > 0 && !JAVA(c) -> losses--; nap[c] = 1
		fi
	}
asleep:
	if
	:: atomic { turn[c] != stop && (turn[c] == go || called[c] || HAS(msgs, own[c])) ->
			turn[c] = 0; called[c] = 0; msgs = msgs & ~BIT(own[c]); goto attempt }
	:: atomic { turn[c] == stop -> turn[c] = 0; if :: deaths > 0 -> deaths--; goto die :: d_step { end_wait(c) } fi }
	fi;
	PUBLISHING(WHEN(BUG != 3, give_up(own[c])));
	goto idle;
hold:
	if
	:: atomic { left[c] > 0 && turn[c] -> turn[c] = 0; if :: deaths > 0 -> deaths--; goto die :: true fi }
	:: left[c] == 0 -> goto idle
	fi;
unlock:
	PUBLISHING(left[c] = 0; release(own[c]));
	goto idle;
die:
	atomic { end_wait(c); left[c] = 0; died = died | BIT(c); asked = 0 }
	false
}

/* engine.Resolve: kills the old connection, releases the lock and leaves the queue. */
active proctype Resolver() {
	do
	:: doubt != NONE && !HAS(died, CLIENT(doubt)) ->
		if :: pending -> d_step { acquire(doubt) } :: true fi;
		pending = pending && BUG == 10;
		PUBLISHING(release(doubt));
		PUBLISHING(WHEN(BUG != 2, give_up(doubt)));
		WHEN(pending, d_step { acquire(doubt); pending = 0 });
		doubt = NONE
	od
}

/* The reply to a heartbeat, and the subscriber counts, ignored if our own is missing; see package liveness. */
inline look(p) {
	for (i : 0 .. O - 1) {
		find(i);
		WHEN(pos == qlen || place[AT(p, i)] > 0 && pos + 1 > place[AT(p, i)], absent[AT(p, i)] = 0);
		place[AT(p, i)] = (pos < qlen -> pos + 1 : 0);
		WHEN(OURS(p, i) && (pos == qlen || pos == 0 && holder == NONE && BUG != 7), called[p] = 1)
	}
	listening[p] = 0;
	WHEN(HAS(waiting & subs, own[p]), for (i : 0 .. qlen - 1) {
		j = q[i];
		if
		:: OURS(p, j)
		:: !OURS(p, j) && HAS(subs, j) -> listening[p] = listening[p] | BIT(j); absent[AT(p, j)] = 0
		:: else -> absent[AT(p, j)] = MAX(1, absent[AT(p, j)]);
			WHEN(dead == i && absent[AT(p, j)] > GRACE && BUG != 13, gone[dead] = j; was[dead] = deadline[j]; dead++)
		fi
	});
	nudged = (seen[p] == HEAD_IF_FREE && HAS(listening[p], seen[p]) -> seen[p] : NONE);
	seen[p] = HEAD_IF_FREE
}

proctype Heart(byte p) {
	byte gone[O], dead, nudged = NONE;
	short was[O];
	do
	:: d_step { due[p] && !dead && nudged == NONE -> due[p] = 0; WHEN(BUG != 9, keep_places(p)); look(p) }
	:: dead -> PUBLISHING(evict(dead); dead = 0; for (i : 0 .. O - 1) { gone[i] = 0; was[i] = 0 })
	:: !dead && nudged != NONE -> PUBLISHING(WHEN(nudged == HEAD_IF_FREE, wake(nudged)); nudged = NONE)
	od
}

/* Checks the properties when no other step is possible. */
inline check() {
	for (i : 0 .. qlen - 1) { CHECK(gave_up_leaves_nothing, HAS(waiting, q[i]) || HAS(died, CLIENT(q[i]))) }
	CHECK(gave_up_leaves_nothing, holder == NONE || left[CLIENT(holder)] > 0 || HAS(died, CLIENT(holder)));
	j = HEAD_IF_FREE;
	unused = (j != NONE && HAS(waiting, j) && REDLATCH_WAITS -> unused + 1 : 0);
	blocked = (j != NONE && !HAS(waiting, j) && waiting -> blocked + 1 : 0);
	CHECK(woken_at_once, j == NONE || !HAS(waiting, j) || untold);
	CHECK(free_lock_within_poll, unused <= POLL);
	CHECK(dead_waiter_expires, blocked <= KEEP + FAIR);
	CHECK(dead_waiter_evicted, blocked <= 4 || !REDLATCH_WAITS)
}

inline age() {
	WHEN(ttl == 1, holder = NONE; untold = 1);
	ttl = MAX(0, ttl - 1);
	for (i : 0 .. qlen - 1) { deadline[q[i]] = MAX(-3, deadline[q[i]] - 1) }
	for (i : 0 .. C * O - 1) { absent[i] = (absent[i] > 0 -> MIN(4, absent[i] + 1) : 0) }
	for (i : 0 .. C - 1) { left[i] = MAX(0, left[i] - 1); due[i] = HAS(waiting, own[i]) && !JAVA(i) }
}

/* Renews a hold, or lets a client act. */
inline decide(c) {
	if
	:: left[c] > 0 && holder == own[c] -> ttl = LEASE; left[c] = LEASE
	:: left[c] > 0 || nap[c] == 1 -> nap[c] = 0; turn[c] = go
	:: nap[c] > 1 -> nap[c] = (nap[c] == FOREVER -> FOREVER : nap[c] - 1)
	:: nap[c] > 1 -> turn[c] = stop
	:: left[c] == 0 && nap[c] == 0 && calls > 0 && !HAS(died, c) -> calls--; turn[c] = go
	:: left[c] == 0 && nap[c] == 0
	fi
}

active proctype Clock() { do :: atomic { timeout; d_step { check(); age() } decide(0); decide(1); decide(2) } od }

init { atomic { for (x : 0 .. C - 1) { run Client(x); WHEN(!JAVA(x), run Heart(x)) } } }
