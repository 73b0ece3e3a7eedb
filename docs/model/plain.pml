/*
 * Plain lock: callers in different processes, one lock, one server.
 *
 * A caller has OWN owners: it does not use an owner in doubt again until the owner's resolver has finished. Times,
 * except idle, are the ticks left. Calls on a working connection are executed within the tick in which they are sent; a
 * fault is a lost connection, a deleted key, or a caller that leaves before its reply.
 */
#include "common.pml"
#ifndef PEER
#define PEER 0	/* 1: a Redisson client takes the place of the second caller, and two faults may occur */
#endif
#ifndef CALLERS
#define CALLERS (2 - PEER)
#endif
#define MARGIN (BUG == 6 -> 0 : 1)
#define POLL 1
#define OWNERS (OWN * CALLERS + 1)	/* 0 is nobody */
#define REMOTE CALLERS	/* Redisson as a caller */
#define REDISSON OWNERS	/* its owner */
#define CALLER(o) (((o) - 1) / OWN)
#define FIRST(c) (1 + OWN * (c))

/* EV is a visible step, enabled if a condition holds. With -DTRACE, it must also be the next step of a trace. */
#ifdef TRACE
#include "trace.pml"
#else
#define LEASE 2
#define OWN 2
#define EV(condition, step, o, value) (condition)
#define EV_SENT(o) skip
#define EV_CALLER(condition, step, c) (condition)
#define HIDES(c) true
#define LOSES(call, c) true
#define TRACED false
#define GAP(c)
#define AWAITS(c) asleep[c]
#define BEGIN skip
#define NOT_SENT
#define FRESH(o)
/* Time does not pass while a call waits to run or a caller or resolver must act. */
#define DONE(o) (acquire[o] != SENT && doubt[o] != LATE && doubt[o] != CERTAIN)
#define RESTS(c) (DONE(FIRST(c)) && DONE(FIRST(c) + 1) && renew[c] != SENT && release[c] == 0 \
	&& !(hold[c] && left[c] == 0) && !(asleep[c] && nap[c] == 0) \
	&& !(grants[c] == 0 && (acquire[own[c]] > SENT || renew[c] > SENT)))
#define TIME_PASSES (RESTS(0) && RESTS(CALLERS - 1))
#endif

hidden byte no_overlap, ends_first, leaves_nothing, true_loss, heard, poll_cap;	/* properties */

/* A call: none, sent, executed with its reply on the way, or on a lost connection, where it may still run. */
#define SENT 1
#define YES 2
#define NO 3
#define LOST 4
byte acquire[OWNERS + 1], renew[CALLERS], release[CALLERS];
bit stray[OWNERS];	/* a renewal may still run, but nobody waits for it */

/* An owner in doubt: its caller left before the reply; no call can acquire the lock for it; its connection was lost. */
#define LATE 1
#define CERTAIN 2
#define UNSURE 3	/* plus the ticks until the doubt ends without a fence */
byte doubt[OWNERS + 1];

byte key, ttl;		/* on the server */
bit forgot[OWNERS + 1];	/* a third party deleted the owner's key */
bit quiet;		/* the key expired or was deleted without a message */

/* A caller's subscription: none, without or with an unread message, or its connection is down. */
#define LISTENS 1
#define MESSAGE 2
#define DOWN 3
byte link[CALLERS];

byte own[CALLERS + 1], nap[CALLERS], idle[CALLERS];	/* idle: time asleep while the lock was free */
byte left[CALLERS], grants[CALLERS];	/* of the hold; of the hold that the next reply can grant or extend */
bit hold[CALLERS + 1], asleep[CALLERS];
byte faults = 1 + PEER;

#define UNUSED(o) (acquire[o] == 0 && doubt[o] == 0)
/* An unused owner of a caller, or 0. */
#define FREE(c) (UNUSED(FIRST(c)) -> FIRST(c) : \
	(UNUSED(FIRST(c) + 1) -> FIRST(c) + 1 : (OWN > 2 && UNUSED(FIRST(c) + OWN - 1) -> FIRST(c) + OWN - 1 : 0)))
#define VALID(c) (hold[c] && !forgot[own[c]])
#define SPEND faults = faults - !TRACED
#define FAULT faults > 0 -> SPEND

inline take(o) {
	for (i : 0 .. REMOTE) { CHECK(no_overlap, !VALID(i) || own[i] == o) }
	key = o; ttl = LEASE; quiet = false
}

inline free(silently) {
	key = 0; ttl = 0; quiet = silently;
	for (i : 0 .. CALLERS - 1) { link[i] = (link[i] == LISTENS && !silently && BUG != 5 -> MESSAGE : link[i]) }
}

/* A resolver ends. The owner has no key, and no call that could still acquire it. */
inline resolved(o) {
	CHECK(leaves_nothing, key != o && acquire[o] != LOST);
	doubt[o] = 0
}

/* The server runs an owner's calls, and engine.Resolve ends its doubt with a fence or calls that release its lock. */
#define RUNS (acquire[o] == SENT || acquire[o] == LOST)
active [OWNERS - 1] proctype Owner() {
	byte o = _pid + 1;
	do
	:: atomic { EV(RUNS && (key == 0 || key == o), executed, o, true);
		take(o); acquire[o] = (acquire[o] == SENT -> YES : 0) }
	:: atomic { EV(RUNS && key != 0 && key != o, executed, o, false);
		/* The caller will sleep until the lease ends, but no longer than a poll. */
		WHEN(acquire[o] == SENT && doubt[o] == 0, nap[CALLER(o)] = (BUG == 7 -> ttl + 1 : MIN(ttl + 1, POLL)));
		acquire[o] = (acquire[o] == SENT -> NO : 0) }
	:: atomic { HIDES(CALLER(o)) && acquire[o] == LOST -> acquire[o] = 0 }
	:: atomic { EV(stray[o] && key == o, renewed, o, true); ttl = LEASE }

	:: atomic { HIDES(CALLER(o)) && doubt[o] == LATE && acquire[o] > SENT ->
		acquire[o] = 0; doubt[o] = (BUG == 4 -> 0 : CERTAIN) }
	:: atomic { HIDES(CALLER(o)) && doubt[o] == LATE && FAULT;
		acquire[o] = (acquire[o] == SENT -> LOST : 0); doubt[o] = UNSURE + LEASE }
	:: atomic { HIDES(CALLER(o)) && doubt[o] >= UNSURE ->
		doubt[o] = CERTAIN; acquire[o] = (BUG == 2 -> acquire[o] : 0) }
	:: atomic { EV(doubt[o] > LATE && key == o, released, o, true);
		free(false);
		if :: resolved(o) :: FAULT fi }
	:: atomic { HIDES(CALLER(o)) && doubt[o] == CERTAIN && key != o -> resolved(o) }
	/* A call is assumed not to run later than one lease after its connection was lost. */
	:: atomic { HIDES(CALLER(o)) && doubt[o] == UNSURE && key != o && acquire[o] == 0 -> resolved(o) }
	od
}

#define o own[c]
inline new_owner() { o = FREE(c); stray[o] = false; FRESH(o) }
inline drop_renewal() { stray[o] = stray[o] || renew[c] == SENT; renew[c] = 0 }

active [CALLERS] proctype Caller() {
	byte c = _pid - OWNERS + 1;
	bool subscribes;	/* not before the second attempt */

start:	atomic {
		HIDES(c);
		/* In a process, the next caller may keep the subscription. */
		if :: BUG != 10 -> link[c] = 0 :: BUG == 10 || TRACED fi;
		o = 0; grants[c] = 0; nap[c] = 0; asleep[c] = false; idle[c] = 0; subscribes = false
	}
	atomic {
		HIDES(c) && FREE(c) != 0;
		CHECK(leaves_nothing, !link[c]);
		new_owner()
	}
again:	atomic {
		EV_SENT(o);
		forgot[o] = false; acquire[o] = SENT; grants[c] = LEASE - MARGIN;
		nap[c] = 0; asleep[c] = false; idle[c] = 0
	}
	if
	:: atomic { EV(acquire[o] == YES && grants[c] == 0, granted, o, false);	/* the lease could end too early */
		acquire[o] = 0; doubt[o] = CERTAIN; goto start }
	:: atomic { EV(acquire[o] == YES && grants[c] > 0, granted, o, true);
		CHECK(no_overlap, forgot[o] || key == 0 || key == o);
		acquire[o] = 0; link[c] = 0; subscribes = false;
		hold[c] = true; left[c] = grants[c]; goto held }
	:: atomic { EV(acquire[o] == NO && (subscribes || BUG == 1), refused, o, 0);
		acquire[o] = 0; asleep[c] = true; link[c] = (BUG == 1 -> MAX(link[c], LISTENS) : link[c]) }
	:: atomic { EV(acquire[o] == NO && !subscribes && BUG != 1, refused, o, 0);
		acquire[o] = 0; nap[c] = 0; goto listen }
	:: atomic { HIDES(c) && LOSES(acquire, c) && acquire[o] != 0 && FAULT;	/* the connection is lost */
		acquire[o] = (acquire[o] == SENT -> LOST : 0); doubt[o] = UNSURE + LEASE;
		WHEN(BUG != 11, if :: FREE(c) != 0 -> new_owner() :: goto start fi);
		goto listen }
	:: atomic { EV_CALLER(LOSES(acquire, c) && acquire[o] != 0 && faults > 0, gave_up, c);
		SPEND; doubt[o] = LATE; goto start }
	fi;
listen:	do	/* or asleep */
	GAP(c)
	:: atomic { EV_CALLER(AWAITS(c) && link[c] == MESSAGE, received, c);
		link[c] = LISTENS; asleep[c] = false; nap[c] = 0; idle[c] = 0 }
	:: atomic { HIDES(c) && asleep[c] && (nap[c] == 0 || TRACED) -> asleep[c] = false; idle[c] = 0 }
	:: atomic { EV_CALLER(!asleep[c] && !link[c], listening, c); link[c] = LISTENS; subscribes = true;
		if :: TRACED :: !TRACED -> goto again fi }
	:: atomic { HIDES(c) && !asleep[c] -> subscribes = true; goto again }	/* it has subscribed, or that takes too long */
	:: atomic { EV_CALLER(true, gave_up, c); goto start }
	od;

held:	do
	:: atomic { EV(renew[c] == 0 && left[c] > 0, renewing, o, 0); renew[c] = SENT; grants[c] = LEASE - MARGIN }
	:: atomic { EV(renew[c] == SENT && key == o, renewed, o, true); renew[c] = YES; ttl = LEASE }
	:: atomic { HIDES(c) && renew[c] == SENT && key != o -> renew[c] = NO }
	:: atomic { EV(renew[c] == YES, confirmed, o, 0); renew[c] = 0; left[c] = (left[c] -> MAX(left[c], grants[c]) : 0) }
	:: atomic { HIDES(c) && LOSES(renew, c) && (renew[c] == SENT || renew[c] == YES) && FAULT; drop_renewal() }
	:: atomic { EV(renew[c] == NO || left[c] == 0, lost, o, 0);
		drop_renewal(); hold[c] = false; left[c] = 0; doubt[o] = CERTAIN; goto start }
	:: atomic { EV(left[c] > 0, releasing, o, 0);
		WHEN(BUG != 3 || renew[c] != SENT, drop_renewal());
		hold[c] = false; left[c] = 0; release[c] = SENT; break }
	od;
	do
	:: atomic { EV(release[c] == SENT && (key == o || BUG == 8 && key != 0), released, o, true);
		release[c] = YES; free(false) }
	:: atomic { HIDES(c) && release[c] == SENT && key != o && (BUG != 8 || key == 0) -> release[c] = YES }
	:: atomic { HIDES(c) && release[c] == YES && renew[c] == 0 -> release[c] = 0; goto start }
	:: atomic { HIDES(c) && FAULT; release[c] = SENT }	/* it is sent again */
	:: atomic { HIDES(c) && FAULT; release[c] = 0; doubt[o] = CERTAIN; goto start }
	:: atomic { renew[c] == SENT -> CHECK(true_loss, key == o); renew[c] = 0 }	/* no loss is reported */
	od
}
#undef o

/* The subscriptions' connection. After a reconnect, the subscriber gets a gap. */
#define LINK(c) \
	:: atomic { !TRACED && (link[c] == LISTENS || link[c] == MESSAGE) && FAULT; link[c] = DOWN } \
	:: atomic { link[c] == DOWN -> link[c] = MESSAGE }

active proctype World() {
	BEGIN;
	do
	LINK(0) LINK(CALLERS - 1) NOT_SENT
	:: atomic { PEER && key == 0 -> take(REDISSON); own[REMOTE] = REDISSON; hold[REMOTE] = true }
	:: atomic { PEER && key == REDISSON -> free(false); hold[REMOTE] = false }
	/* A third party deletes the key, with or without a message. */
	:: atomic { EV_CALLER(key != 0 && key != REDISSON && faults > 0, deleted, 0);
		SPEND; forgot[key] = true;
		if :: !TRACED -> free(false) :: free(true) fi }
	od
}

#define HOLDS(o) (own[CALLER(o)] == o && (hold[CALLER(o)] || acquire[o] == YES && grants[CALLER(o)]))	/* or will */
/* A call, a resolver or the holder will free the key of owner o. */
#define MINDED(o) (acquire[o] || doubt[o] || HOLDS(o))

active proctype Clock() {
	do
	:: d_step {
		TIME_PASSES;
		CHECK(leaves_nothing, key == 0 || MINDED(key));
		for (i : 0 .. CALLERS - 1) {
			CHECK(heard, !(asleep[i] && link[i] == LISTENS && key == 0 && !quiet));
			left[i] = MAX(left[i], 1) - 1;
			grants[i] = (TRACED || BUG == 9 -> grants[i] : MAX(grants[i], 1) - 1);
			nap[i] = (asleep[i] && nap[i] -> nap[i] - 1 : nap[i]);
			idle[i] = (!TRACED && asleep[i] && key == 0 -> idle[i] + 1 : 0);
			CHECK(poll_cap, idle[i] <= POLL)
		}
		for (i : 1 .. OWNERS - 1) { doubt[i] = (doubt[i] > UNSURE -> doubt[i] - 1 : doubt[i]) }
		ttl = MAX(ttl, 1) - 1;
		WHEN(key && ttl == 0,
			CHECK(ends_first, key == REDISSON || !HOLDS(key));
			hold[REMOTE] = hold[REMOTE] && key != REDISSON;
			free(true))
	}
	od
}
