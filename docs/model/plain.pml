/*
 * Plain lock: callers in different processes, one lock, one server.
 *
 * A caller has two owners: it does not use an owner in doubt again until the owner's resolver has finished. Times are
 * what is left of them, in ticks. Calls on a working connection are executed within the tick in which they are sent; a
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
#ifndef EV
#define EV(what, who, value) skip
#endif

#define LEASE 2
#define MARGIN 1
#define POLL 1
#define OWNERS (2 * CALLERS + 1)	/* 0 is nobody */
#define REDISSON OWNERS
#define CALLER(o) ((o - 1) / 2)
#define FIRST(c) (1 + 2 * c)
#define OTHER(o) ((o & 1) -> o + 1 : o - 1)

/* Properties. An assertion that fails shows the name of its property. */
bit no_overlap, ends_first, leaves_nothing, true_loss, heard, poll_cap;	/* always 0 */
#define CHECK(property, holds) assert(property || (holds))

/* A call: none, sent, executed with its reply on the way, or on a lost connection, where it may still run. */
#define SENT 1
#define YES 2
#define NO 3
#define LOST 4
byte acquire[OWNERS], renew[OWNERS], release[OWNERS];

/* An owner in doubt: its caller has left; its connection is lost; no call can acquire the lock for it any more. */
#define LATE 1
#define UNSURE 2
#define CERTAIN 3
byte doubt[OWNERS], asks[OWNERS];	/* asks: how long a doubt without a fence lasts */

byte key, ttl;		/* on the server */
bool forgot[OWNERS];	/* a third party deleted the owner's key */
bool quiet;		/* the key was freed without a message */

byte own[CALLERS], left[CALLERS], nap[CALLERS], idle[CALLERS];	/* idle: time asleep while the lock was free */
bool old[CALLERS], stale[CALLERS];	/* the attempt, or the renewal, was sent before the last tick */
bool hold[CALLERS], watched[CALLERS], asleep[CALLERS];
bool sub[CALLERS], down[CALLERS], msg[CALLERS], deaf[CALLERS];	/* deaf: may have missed a message */

byte faults = FAULTS;

#define UNUSED(o) (acquire[o] == 0 && renew[o] == 0 && release[o] == 0 && doubt[o] == 0)
#define VALID(c) (hold[c] && !forgot[own[c]])

inline free_key()
{
	key = 0; ttl = 0; quiet = false;
	if
	:: BUG == 5
	:: else ->
		EV(published, 0, 0);
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
inline run_acquire(o)
{
	if
	:: key == 0 || key == o ->
		EV(executed, o, true);
		key = o; ttl = LEASE; quiet = false; acquire[o] = (acquire[o] == SENT -> YES : 0)
	:: else ->
		EV(executed, o, false);
		nap[CALLER(o)] = (acquire[o] == SENT && doubt[o] == 0 ->
			(ttl + 1 < POLL || BUG == 7 -> ttl + 1 : POLL) : nap[CALLER(o)]);
		acquire[o] = (acquire[o] == SENT -> NO : 0)
	fi
}

#define RUN(o) \
	:: atomic { acquire[o] == SENT || acquire[o] == LOST -> run_acquire(o) } \
	:: atomic { acquire[o] == LOST -> acquire[o] = 0 } \
	:: atomic { renew[o] == SENT || renew[o] == LOST -> \
		EV(renewed, o, key == o); \
		ttl = (key == o -> LEASE : ttl); \
		renew[o] = (renew[o] == LOST || !watched[CALLER(o)] -> 0 : (key == o -> YES : NO)) } \
	:: atomic { renew[o] == LOST -> renew[o] = 0 } \
	:: atomic { release[o] == SENT -> \
		if \
		:: key == o || (BUG == 8 && key != 0) -> EV(released, o, true); release[o] = YES; free_key() \
		:: else -> EV(released, o, false); release[o] = NO \
		fi }

/* engine.Resolve: the fence, and calls that release the owner's lock. */
#define RESOLVE(o) \
	:: atomic { doubt[o] == LATE && acquire[o] == NO -> acquire[o] = 0; resolved(o) } \
	:: atomic { doubt[o] == LATE && acquire[o] == YES -> acquire[o] = 0; doubt[o] = CERTAIN } \
	:: atomic { doubt[o] == LATE && faults > 0 -> \
		faults--; acquire[o] = (acquire[o] == SENT -> LOST : 0); enter_doubt(o, UNSURE) } \
	:: atomic { doubt[o] == UNSURE -> EV(fenced, o, 0); doubt[o] = CERTAIN; \
		acquire[o] = (BUG == 2 -> acquire[o] : 0) } \
	:: atomic { doubt[o] > LATE && key == o -> EV(undone, o, true); free_key(); \
		if :: resolved(o) :: faults > 0 -> faults-- fi } \
	:: atomic { doubt[o] == CERTAIN && key != o -> EV(undone, o, false); resolved(o) } \
	/* A call is assumed not to run later than one lease after its connection was lost. */ \
	:: atomic { doubt[o] == UNSURE && asks[o] == 0 && key != o && acquire[o] == 0 -> resolved(o) }

/* The subscriptions' connection. After a reconnect, the subscriber gets a gap. */
#define LINK(c) \
	:: atomic { sub[c] && !down[c] && faults > 0 -> faults--; down[c] = true; msg[c] = false; deaf[c] = true } \
	:: atomic { down[c] -> down[c] = false; msg[c] = sub[c] }

active proctype World()
{
	byte i;
	do
	RUN(1) RUN(2) RESOLVE(1) RESOLVE(2) LINK(0)
#if CALLERS > 1
	RUN(3) RUN(4) RESOLVE(3) RESOLVE(4) LINK(1)
#endif
#if CALLERS > 2
	RUN(5) RUN(6) RESOLVE(5) RESOLVE(6) LINK(2)
#endif
#if PEER
	:: atomic { key == 0 -> key = REDISSON; ttl = LEASE; quiet = false }
	:: atomic { key == REDISSON -> free_key() }
#endif
	:: atomic { key != 0 && key != REDISSON && faults > 0 ->	/* a third party deletes the key */
		faults--; forgot[key] = true;
		if
		:: free_key()
		:: key = 0; ttl = 0; quiet = true
		fi }
	od
}

/* Time does not pass while somebody has something to do. */
#define DONE(o) (acquire[o] != SENT && renew[o] != SENT && release[o] == 0 && doubt[o] != LATE && doubt[o] != CERTAIN)
#define RESTS(c) (DONE(FIRST(c)) && DONE(FIRST(c) + 1) && !(hold[c] && left[c] == 0) \
	&& !(asleep[c] && nap[c] == 0) && !(old[c] && acquire[own[c]] > SENT) && !(stale[c] && renew[own[c]] > SENT))
#if CALLERS > 2
#define ALL_REST (RESTS(0) && RESTS(1) && RESTS(2))
#elif CALLERS > 1
#define ALL_REST (RESTS(0) && RESTS(1))
#else
#define ALL_REST RESTS(0)
#endif
/* Somebody will free the key of owner o. */
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
			nap[i] = (asleep[i] -> nap[i] - 1 : nap[i]);
			old[i] = acquire[own[i]] > SENT;
			stale[i] = renew[own[i]] > SENT;
			idle[i] = (asleep[i] && key == 0 -> idle[i] + 1 : 0);
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
	EV(sent, o, 0);
	own[c] = o; forgot[o] = false; acquire[o] = SENT; old[c] = false; nap[c] = 0; asleep[c] = false; idle[c] = 0;
	deaf[c] = deaf[c] && (down[c] || !sub[c])
}

active [CALLERS] proctype Caller()
{
	byte c = _pid - 2, o, i;
	bool subscribes;	/* not before the second attempt */

start:	atomic {
		sub[c] = (BUG == 10 -> sub[c] : false); msg[c] = false; deaf[c] = false;
		asleep[c] = false; nap[c] = 0; idle[c] = 0; subscribes = false;
		o = 0
	}
	atomic {
		UNUSED(FIRST(c)) || UNUSED(FIRST(c) + 1);
		CHECK(leaves_nothing, !sub[c]);
		o = (UNUSED(FIRST(c)) -> FIRST(c) : FIRST(c) + 1);
		send()
	}
wait:	if
	:: atomic { acquire[o] == YES && old[c] && BUG != 9 ->	/* the lease could end too early */
		EV(granted, o, false);
		acquire[o] = 0; enter_doubt(o, CERTAIN); goto start }
	:: atomic { acquire[o] == YES && (!old[c] || BUG == 9) ->
		EV(granted, o, true);
		acquire[o] = 0; sub[c] = false; msg[c] = false; deaf[c] = false; subscribes = false;
		left[c] = LEASE - (BUG == 6 -> 0 : MARGIN); hold[c] = true; watched[c] = true;
		for (i : 0 .. CALLERS - 1) {
			CHECK(no_overlap, i == c || !VALID(i) || !VALID(c))
		}
		i = 0; goto held }
	:: atomic { acquire[o] == NO && (subscribes || BUG == 1) ->
		EV(refused, o, 0);
		acquire[o] = 0; asleep[c] = true; sub[c] = sub[c] || BUG == 1 }
	:: atomic { acquire[o] == NO && !subscribes && BUG != 1 ->
		EV(refused, o, 0);
		acquire[o] = 0; nap[c] = 0; goto listen }
	:: atomic { acquire[o] != 0 && faults > 0 ->	/* the connection is lost */
		faults--; acquire[o] = (acquire[o] == SENT -> LOST : 0); enter_doubt(o, UNSURE);
		if
		:: UNUSED(OTHER(o)) -> o = (BUG == 11 -> o : OTHER(o)); goto listen
		:: goto start
		fi }
	:: atomic { acquire[o] != 0 && faults > 0 -> EV(gave_up, o, 0); faults--; enter_doubt(o, LATE); goto start }
	fi;
	if	/* asleep */
	:: atomic { msg[c] -> EV(received, o, 0); msg[c] = false; asleep[c] = false; nap[c] = 0; idle[c] = 0 }
	:: atomic { nap[c] == 0 -> asleep[c] = false; idle[c] = 0 }
	:: atomic { true -> EV(gave_up, o, 0); goto start }
	fi;
listen:	if
	:: atomic { sub[c] || !down[c] -> sub[c] = true; subscribes = true; send(); goto wait }
	:: atomic { !sub[c] -> subscribes = true; send(); goto wait }	/* subscribing takes too long */
	:: atomic { true -> EV(gave_up, o, 0); goto start }
	fi;

held:	do
	:: atomic { renew[o] == 0 && left[c] == LEASE - MARGIN -> EV(renewing, o, 0); renew[o] = SENT; stale[c] = false }
	:: atomic { renew[o] == YES ->
		renew[o] = 0; left[c] = (left[c] && !stale[c] -> LEASE - MARGIN : left[c]) }
	:: atomic { (renew[o] == SENT || renew[o] == YES) && faults > 0 ->
		faults--; renew[o] = (renew[o] == SENT -> LOST : 0) }
	:: atomic { renew[o] == NO || left[c] == 0 ->
		EV(lost, o, 0);
		renew[o] = (renew[o] == YES || renew[o] == NO -> 0 : renew[o]);
		watched[c] = false; hold[c] = false; left[c] = 0; enter_doubt(o, CERTAIN); goto start }
	:: atomic { left[c] > 0 ->
		EV(releasing, o, 0);
		watched[c] = (BUG == 3); renew[o] = (BUG != 3 && (renew[o] == YES || renew[o] == NO) -> 0 : renew[o]);
		hold[c] = false; left[c] = 0; release[o] = SENT; break }
	od;
	do
	:: atomic { release[o] > SENT && (BUG != 3 || renew[o] == 0) -> release[o] = 0; watched[c] = false; goto start }
	:: atomic { release[o] > 0 && faults > 0 -> faults--; release[o] = SENT }	/* it is sent again */
	:: atomic { release[o] > 0 && faults > 0 -> faults--; release[o] = 0; enter_doubt(o, CERTAIN); goto start }
	:: atomic { renew[o] == YES || renew[o] == NO -> CHECK(true_loss, !watched[c] || renew[o] == YES); renew[o] = 0 }
	od
}
