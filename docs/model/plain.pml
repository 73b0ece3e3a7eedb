/*
 * Plain lock: callers in different processes, one lock, one server.
 *
 * A caller has two owners: it does not use an owner in doubt again until the owner's resolver has finished. Times,
 * except idle, are the ticks left. Calls on a working connection are executed within the tick in which they are sent; a
 * fault is a lost connection, a deleted key, or a caller that leaves before its reply.
 * -DBUG=n selects a mutation, which must violate the property that runs.txt names.
 */
#ifndef BUG
#define BUG 0
#endif
#ifndef CALLERS
#define CALLERS 2
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef PEER
#define PEER 0		/* 1: a Redisson client also uses the lock */
#endif

#ifndef LEASE
#define LEASE 2
#endif
#define MARGIN 1
#define POLL 1
#ifndef OWN
#define OWN 2	/* owners of a caller */
#endif
#define OWNERS (OWN * CALLERS + 1)	/* 0 is nobody */
#define REDISSON OWNERS
#define CALLER(o) ((o - 1) / OWN)
#define FIRST(c) (1 + OWN * c)

/* Properties. A failed assertion contains the name of its property. */
bit no_overlap, ends_first, leaves_nothing, true_loss, heard, poll_cap;	/* always 0 */
#define CHECK(property, holds) assert(property || (holds))

/* A call: none, sent, executed with its reply on the way, or on a lost connection, where it may still run. */
#define SENT 1
#define YES 2
#define NO 3
#define LOST 4
byte acquire[OWNERS], renew[OWNERS], release[OWNERS];

/* An owner in doubt: its caller left before the reply; its connection was lost; no call can acquire the lock for it. */
#define LATE 1
#define UNSURE 2
#define CERTAIN 3
byte doubt[OWNERS], asks[OWNERS];	/* asks: ticks until a doubt ends without a fence */

byte key, ttl;		/* on the server */
bool forgot[OWNERS];	/* a third party deleted the owner's key */
bool quiet;		/* the key expired or was deleted without a message */

byte own[CALLERS], left[CALLERS], nap[CALLERS], idle[CALLERS];	/* idle: time asleep while the lock was free */
bool old[CALLERS], stale[CALLERS];	/* the attempt, or the renewal, was sent before the last tick */
bool hold[CALLERS], watched[CALLERS], asleep[CALLERS];
bool sub[CALLERS], down[CALLERS], msg[CALLERS], deaf[CALLERS];	/* deaf: may have missed a message */

byte faults = FAULTS;

#define UNUSED(o) (acquire[o] == 0 && renew[o] == 0 && release[o] == 0 && doubt[o] == 0)
/* An unused owner of a caller, or 0. */
#define FREE(c) (UNUSED(FIRST(c)) -> FIRST(c) : \
	(UNUSED(FIRST(c) + 1) -> FIRST(c) + 1 : (OWN > 2 && UNUSED(FIRST(c) + OWN - 1) -> FIRST(c) + OWN - 1 : 0)))
#define VALID(c) (hold[c] && !forgot[own[c]])

/* A visible step, enabled if a condition holds. With -DTRACE, it must also be the next step of a trace. */
#ifndef TRACE
#define EV(condition, step, o, value) (condition)
#define EV_SENT(o) skip
#define EV_CALLER(condition, step, c) (condition)
#define FAULT faults > 0 -> faults--
#define HIDDEN(o) true
#define HIDES(c) true
#define LOSES(call, c) true
#define TRACED false
#define GAP(c)
#define RECEIVED(c)
#define BEGIN skip
#define LATE_RENEWAL(o)
#define LOST_RENEWAL(o) skip
#define FRESH(o) forgot[o] = false
#define RESTS(c) (DONE(FIRST(c)) && DONE(FIRST(c) + 1) && !(hold[c] && left[c] == 0) \
	&& !(asleep[c] && nap[c] == 0) && !(old[c] && acquire[own[c]] > SENT) && !(stale[c] && renew[own[c]] > SENT))
#else
#include "trace.pml"
#endif

inline free_key()
{
	key = 0; ttl = 0; quiet = false;
	if
	:: BUG == 5
	:: else ->
		for (i : 0 .. CALLERS - 1) {
			msg[i] = msg[i] || (sub[i] && !down[i])
		}
		i = 0
	fi
}

inline enter_doubt(o, how)
{
	doubt[o] = (BUG == 4 -> 0 : how);
	asks[o] = (how == UNSURE && BUG != 4 -> LEASE : 0)
}

/* A resolver ends. The owner has no key, and no call that could still acquire it. */
inline resolved(o)
{
	CHECK(leaves_nothing, key != o && acquire[o] != LOST);
	doubt[o] = 0; asks[o] = 0
}

/* acquire.lua. The refused caller will sleep until the lease ends, but no longer than a poll. */
#define RUNS(call) (call == SENT || call == LOST)
#define RUN(o) \
	:: atomic { EV(RUNS(acquire[o]) && (key == 0 || key == o), executed, o, true); \
		key = o; ttl = LEASE; quiet = false; acquire[o] = (acquire[o] == SENT -> YES : 0) } \
	:: atomic { EV(RUNS(acquire[o]) && key != 0 && key != o, executed, o, false); \
		nap[CALLER(o)] = (acquire[o] == SENT && doubt[o] == 0 -> \
			(ttl + 1 < POLL || BUG == 7 -> ttl + 1 : POLL) : nap[CALLER(o)]); \
		acquire[o] = (acquire[o] == SENT -> NO : 0) } \
	:: atomic { HIDDEN(o) && acquire[o] == LOST -> acquire[o] = 0 } \
	:: atomic { EV(RUNS(renew[o]) && key == o, renewed, o, true); \
		ttl = LEASE; renew[o] = (renew[o] == LOST || !watched[CALLER(o)] -> 0 : YES) } \
	:: atomic { HIDDEN(o) && RUNS(renew[o]) && key != o -> \
		renew[o] = (renew[o] == LOST || !watched[CALLER(o)] -> 0 : NO) } \
	:: atomic { HIDDEN(o) && renew[o] == LOST -> renew[o] = 0 } \
	LATE_RENEWAL(o) \
	:: atomic { EV(release[o] == SENT && (key == o || BUG == 8 && key != 0), released, o, true); \
		release[o] = YES; free_key() } \
	:: atomic { HIDDEN(o) && release[o] == SENT && key != o && (BUG != 8 || key == 0) -> release[o] = NO }

/* engine.Resolve: the fence, and calls that release the owner's lock. */
#define RESOLVE(o) \
	:: atomic { HIDDEN(o) && doubt[o] == LATE && acquire[o] == NO -> acquire[o] = 0; resolved(o) } \
	:: atomic { HIDDEN(o) && doubt[o] == LATE && acquire[o] == YES -> acquire[o] = 0; doubt[o] = CERTAIN } \
	:: atomic { HIDDEN(o) && doubt[o] == LATE && FAULT; \
		acquire[o] = (acquire[o] == SENT -> LOST : 0); enter_doubt(o, UNSURE) } \
	:: atomic { HIDDEN(o) && doubt[o] == UNSURE -> doubt[o] = CERTAIN; \
		acquire[o] = (BUG == 2 -> acquire[o] : 0) } \
	:: atomic { EV(doubt[o] > LATE && key == o, released, o, true); free_key(); \
		if :: resolved(o) :: FAULT fi } \
	:: atomic { HIDDEN(o) && doubt[o] == CERTAIN && key != o -> resolved(o) } \
	/* A call is assumed not to run later than one lease after its connection was lost. */ \
	:: atomic { HIDDEN(o) && doubt[o] == UNSURE && asks[o] == 0 && key != o && acquire[o] == 0 -> resolved(o) }

/* The subscriptions' connection. After a reconnect, the subscriber gets a gap. */
#define LINK(c) \
	:: atomic { !TRACED && sub[c] && !down[c] && FAULT; down[c] = true; msg[c] = false; deaf[c] = true } \
	:: atomic { down[c] -> down[c] = false; msg[c] = sub[c] }

active proctype World()
{
	byte i;
	BEGIN;
	do
	RUN(1) RUN(2) RESOLVE(1) RESOLVE(2) LINK(0)
#if CALLERS > 1
	LINK(1)
#endif
#if CALLERS > 2
	LINK(2)
#endif
#if OWNERS > 3
	RUN(3) RUN(4) RESOLVE(3) RESOLVE(4)
#endif
#if OWNERS > 5
	RUN(5) RUN(6) RESOLVE(5) RESOLVE(6)
#endif
#if OWNERS > 7
	RUN(7) RUN(8) RUN(9) RESOLVE(7) RESOLVE(8) RESOLVE(9)
#endif
#if PEER
	:: atomic { key == 0 -> key = REDISSON; ttl = LEASE; quiet = false }
	:: atomic { key == REDISSON -> free_key() }
#endif
	/* A third party deletes the key, with or without a message. */
	:: atomic { !TRACED && key != 0 && key != REDISSON && FAULT; forgot[key] = true; free_key() }
	:: atomic { EV_CALLER(key != 0 && key != REDISSON && faults > 0, deleted, 0);
		faults--; forgot[key] = true; key = 0; ttl = 0; quiet = true }
	od
}

/* Time does not pass while a call waits to run or a caller or resolver must act. */
#define DONE(o) (acquire[o] != SENT && renew[o] != SENT && release[o] == 0 && doubt[o] != LATE && doubt[o] != CERTAIN)
#if CALLERS > 2
#define ALL_REST (RESTS(0) && RESTS(1) && RESTS(2))
#elif CALLERS > 1
#define ALL_REST (RESTS(0) && RESTS(1))
#else
#define ALL_REST RESTS(0)
#endif
/* A call, a resolver or the holder will free the key of owner o. */
#define MINDED(o) (acquire[o] || release[o] || doubt[o] || (own[CALLER(o)] == o && hold[CALLER(o)]))

active proctype Clock()
{
	byte i;
	do
	:: d_step {
		ALL_REST;
		CHECK(leaves_nothing, key == 0 || key == REDISSON || MINDED(key));
		for (i : 0 .. CALLERS - 1) {
			CHECK(heard, !(asleep[i] && sub[i] && !deaf[i] && key == 0 && !quiet) || msg[i]);
			left[i] = (left[i] -> left[i] - 1 : 0);
			nap[i] = (asleep[i] && nap[i] -> nap[i] - 1 : nap[i]);
			old[i] = !TRACED && acquire[own[i]] > SENT;
			stale[i] = !TRACED && renew[own[i]] > SENT;
			idle[i] = (!TRACED && asleep[i] && key == 0 -> idle[i] + 1 : 0);
			CHECK(poll_cap, idle[i] <= POLL)
		}
		for (i : 1 .. OWNERS - 1) {
			asks[i] = (asks[i] -> asks[i] - 1 : 0)
		}
		if
		:: ttl == 1 ->
			CHECK(ends_first, key == REDISSON || own[CALLER(key)] != key || !hold[CALLER(key)]);
			key = 0; ttl = 0; quiet = true
		:: else -> ttl = (ttl -> ttl - 1 : 0)
		fi;
		i = 0
	}
	od
}

inline send()
{
	EV_SENT(o);
	own[c] = o; forgot[o] = false; acquire[o] = SENT; old[c] = false; nap[c] = 0; asleep[c] = false; idle[c] = 0;
	deaf[c] = deaf[c] && (down[c] || !sub[c])
}

active [CALLERS] proctype Caller()
{
	byte c = _pid - 2, o, i;
	bool subscribes;	/* not before the second attempt */

start:	atomic {
		HIDES(c);
		if
		:: BUG == 10 || TRACED	/* in a process, the next caller may keep it */
		:: BUG != 10 -> sub[c] = false; msg[c] = false
		fi;
		deaf[c] = false;
		asleep[c] = false; nap[c] = 0; idle[c] = 0; subscribes = false;
		o = 0
	}
	atomic {
		HIDES(c) && FREE(c) != 0;
		CHECK(leaves_nothing, !sub[c]);
		o = FREE(c); FRESH(o)
	}
	atomic { send() }
wait:	if
	:: atomic { EV(acquire[o] == YES && old[c] && BUG != 9, granted, o, false);	/* the lease could end too early */
		acquire[o] = 0; enter_doubt(o, CERTAIN); goto start }
	:: atomic { EV(acquire[o] == YES && (!old[c] || BUG == 9), granted, o, true);
		acquire[o] = 0; sub[c] = false; msg[c] = false; deaf[c] = false; subscribes = false;
		left[c] = LEASE - (BUG == 6 -> 0 : MARGIN); hold[c] = true; watched[c] = true;
		for (i : 0 .. CALLERS - 1) {
			CHECK(no_overlap, i == c || !VALID(i) || !VALID(c))
		}
		i = 0; goto held }
	:: atomic { EV(acquire[o] == NO && (subscribes || BUG == 1), refused, o, 0);
		acquire[o] = 0; asleep[c] = true; sub[c] = sub[c] || BUG == 1 }
	:: atomic { EV(acquire[o] == NO && !subscribes && BUG != 1, refused, o, 0);
		acquire[o] = 0; nap[c] = 0; goto listen }
	:: atomic { HIDES(c) && LOSES(acquire, c) && acquire[o] != 0 && FAULT;	/* the connection is lost */
		acquire[o] = (acquire[o] == SENT -> LOST : 0); enter_doubt(o, UNSURE);
		if
		:: FREE(c) != 0 -> o = (BUG == 11 -> o : FREE(c)); FRESH(o); goto listen
		:: goto start
		fi }
	:: atomic { EV_CALLER(LOSES(acquire, c) && acquire[o] != 0 && faults > 0, gave_up, c); faults = faults - !TRACED; enter_doubt(o, LATE); goto start }
	fi;
	if	/* asleep */
	GAP(c)
	:: atomic { EV_CALLER(msg[c], received, c); msg[c] = false; asleep[c] = false; nap[c] = 0; idle[c] = 0 }
	:: atomic { HIDES(c) && (nap[c] == 0 || TRACED) -> asleep[c] = false; idle[c] = 0 }
	:: atomic { EV_CALLER(true, gave_up, c); goto start }
	fi;
listen:	if
	:: atomic { EV_CALLER(!sub[c] && !down[c], listening, c); sub[c] = true; subscribes = true; if :: TRACED -> goto listen :: !TRACED -> goto again fi }
	:: atomic { HIDES(c) -> subscribes = true; goto again }	/* it has subscribed, or that takes too long */
	RECEIVED(c)	/* after an attempt that was not sent */
	:: atomic { EV_CALLER(true, gave_up, c); goto start }
	fi;

again:	atomic { send(); goto wait }

held:	do
	:: atomic { EV(renew[o] == 0 && (left[c] == LEASE - MARGIN || TRACED && left[c] > 0), renewing, o, 0); renew[o] = SENT; stale[c] = false }
	:: atomic { EV(renew[o] == YES, confirmed, o, 0);
		renew[o] = 0; left[c] = (left[c] && !stale[c] -> LEASE - MARGIN : left[c]) }
	:: atomic { HIDES(c) && LOSES(renew, c) && (renew[o] == SENT || renew[o] == YES) && FAULT;
		LOST_RENEWAL(o); renew[o] = (renew[o] == SENT -> LOST : 0) }
	:: atomic { EV(renew[o] == NO || left[c] == 0, lost, o, 0);
		renew[o] = (renew[o] == YES || renew[o] == NO -> 0 : renew[o]);
		watched[c] = false; hold[c] = false; left[c] = 0; enter_doubt(o, CERTAIN); goto start }
	:: atomic { EV(left[c] > 0, releasing, o, 0);
		watched[c] = (BUG == 3); renew[o] = (BUG != 3 && (renew[o] == YES || renew[o] == NO) -> 0 : renew[o]);
		hold[c] = false; left[c] = 0; release[o] = SENT; break }
	od;
	do
	:: atomic { HIDES(c) && release[o] > SENT && (BUG != 3 || renew[o] == 0) -> release[o] = 0; watched[c] = false; goto start }
	:: atomic { HIDES(c) && release[o] > 0 && FAULT; release[o] = SENT }	/* the release is sent again */
	:: atomic { HIDES(c) && release[o] > 0 && FAULT; release[o] = 0; enter_doubt(o, CERTAIN); goto start }
	:: atomic { HIDES(c) && (renew[o] == YES || renew[o] == NO) -> CHECK(true_loss, !watched[c] || renew[o] == YES); renew[o] = 0 }
	od
}
