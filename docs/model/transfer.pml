/*
 * Transfer: callers of one process queue locally and pass a lock on, next to a waiter in another process.
 *
 * plain.pml explains the common parts. Every lost connection is fenced here, and every waiter is subscribed. A fault is
 * a lost reply, or a caller that leaves during its attempt.
 */
#include "common.pml"
#define FAULTS 3
#define LEASE 2
#define MARGIN 1
#define BURST 2
#define LOCALS 3	/* owners: local callers are 1 to LOCALS */
#define REMOTE 4

hidden byte no_overlap, ends_first, leaves_nothing, turn_kept, remote_turn;	/* properties */

/* An attempt, as in plain.pml, or an offer of the lock, for whose outcome the holder waits. */
#define SENT 1
#define YES 2
#define NO 3
#define LOST 4
#define OFFERED 5
byte call[LOCALS + 1], from[LOCALS + 1];	/* from: the holder that offers the lock, 0 for an acquire */
#define UNSURE 1	/* until its connection is killed */
#define CERTAIN 2	/* until its lock is released; also of a holder that unlocks */
byte doubt[LOCALS + 1];
byte key, ttl;

byte turn;	/* the local caller that may send calls about the lock */
byte ahead;	/* turns of the current burst */
bit owed;	/* the next caller must yield if another process waits, and until that process releases the lock */
bit naps;	/* the caller with the turn waits for a message or, if owed, yields */
bit waiting[LOCALS + 1], hold[REMOTE + 1];
byte left[LOCALS + 1];
bit remote_waits, remote_msg;
byte streak;	/* holds in a row during the remote wait; 0 if no local caller waits */
byte faults = FAULTS;

inline free(by) {
	key = 0; ttl = 0; remote_msg = remote_waits;
	owed = owed && by != REMOTE; naps = naps && owed
}

/* queue.Pass: the turn goes to some waiting caller (the model does not order them). */
inline pass_turn(released) {
	ahead = (released -> ahead + 1 : ahead);
	if
	:: waiting[1] -> turn = 1
	:: waiting[2] -> turn = 2
	:: waiting[3] -> turn = 3
	:: else -> turn = 0; ahead = 0; owed = false; streak = 0
	fi;
	WHEN(ahead >= BURST && BUG != 3, ahead = 0; owed = true);
	waiting[turn] = false
}

/* queue.passLock: the turn goes together with the lock of owner o, unless the burst is over. */
#define MAY_TRANSFER ((waiting[1] || waiting[2] || waiting[3]) && (ahead + 1 < BURST || BUG == 3))
inline pass_lock(o) { pass_turn(true); from[turn] = o }

/* The holder must release the lock if the next caller did not send its call, or got no reply. */
inline settle(o, how) { WHEN(call[o] == OFFERED, call[o] = 0; doubt[o] = how) }

/* queue.passUnused: the caller leaves with the turn. */
inline leave_turn() {
	if
	:: from[o] && MAY_TRANSFER -> pass_lock(from[o])
	:: else -> settle(from[o], CERTAIN); pass_turn(false)
	fi;
	from[o] = 0
}

/* The server runs an owner's calls, and the resolver ends its doubt. */
#define RUNS (call[o] == SENT || call[o] == LOST)
#define GRANTS (from[o] == 0 && key == 0 || from[o] && (key == from[o] || BUG == 1))
active [LOCALS] proctype Owner() {
	byte o = _pid + 1;
	do
	:: atomic { RUNS && GRANTS -> key = o; ttl = LEASE; call[o] = (call[o] == SENT -> YES : 0) }
	:: atomic { RUNS && !GRANTS -> call[o] = (call[o] == SENT -> NO : 0) }
	:: atomic { doubt[o] == UNSURE -> call[o] = 0; from[o] = 0; doubt[o] = CERTAIN }
	:: atomic { doubt[o] == CERTAIN ->
		WHEN(key == o, free(o)); doubt[o] = 0; WHEN(turn == o, pass_turn(false)) }
	od
}

inline hold_alone(o) {
	hold[o] = true;
	for (i : 1 .. REMOTE) { CHECK(no_overlap, i == o || !hold[i]) }
}

inline granted() {
	settle(from[o], 0); call[o] = 0; from[o] = 0;
	CHECK(ends_first, key == o);
	hold_alone(o); left[o] = LEASE - MARGIN; streak = (remote_waits -> streak + 1 : 0);
	CHECK(remote_turn, streak <= BURST)
}

active [LOCALS] proctype Local() {
	byte o = _pid - LOCALS + 1;

start:	atomic {
		CHECK(turn_kept, turn != o || doubt[o]);
		call[o] == 0 && doubt[o] == 0;
		waiting[o] = (turn != 0); turn = (turn -> turn : o) }
	if
	:: atomic { turn == o && from[o] && BUG == 5 -> granted(); goto held }	/* without a call */
	:: atomic { turn == o && from[o] && BUG != 5 -> call[o] = SENT }
	:: atomic { turn == o && !from[o] && owed && remote_waits -> naps = true; goto yield }
	:: atomic { turn == o && !from[o] && !(owed && remote_waits) ->
try:		owed = false; naps = false; from[o] = 0; call[o] = SENT }
	:: atomic { turn == o -> WHEN(BUG != 4, leave_turn()); goto start }
	:: atomic { waiting[o] -> waiting[o] = false; goto start }
	fi;
	if
	:: atomic { call[o] == YES -> granted(); goto held }
	:: atomic { call[o] == NO && from[o] -> settle(from[o], 0); goto try }
	:: atomic { call[o] == NO && from[o] == 0 -> call[o] = 0; naps = true }
	:: atomic { call[o] && faults > 0 -> faults--;	/* in doubt: it keeps the turn until it is resolved */
		settle(from[o], CERTAIN); call[o] = (call[o] == SENT -> LOST : 0); doubt[o] = UNSURE; goto start }
	fi;
yield:	if	/* or asleep */
	:: atomic { !naps -> goto try }
	:: atomic { true -> naps = false; pass_turn(false); goto start }
	fi;

held:	if
	:: atomic { left[o] == 0 -> hold[o] = false; doubt[o] = CERTAIN;
		streak = (streak -> streak - 1 : 0); goto start }	/* a lost hold does not count as a turn */
	:: atomic { left[o] && MAY_TRANSFER -> hold[o] = false; left[o] = 0; pass_lock(o); call[o] = (BUG == 2 -> 0 : OFFERED) }
	:: atomic { left[o] && !MAY_TRANSFER ->
		hold[o] = false; left[o] = 0; doubt[o] = CERTAIN; pass_turn(true) }
	fi;
	goto start
}

active proctype Remote() {
	do
	:: atomic { !hold[REMOTE] ->	/* called, woken, or polls */
		remote_msg = false;
		if
		:: key == 0 -> key = REMOTE; ttl = LEASE; hold_alone(REMOTE); remote_waits = false; streak = 0
		:: else -> remote_waits = true
		fi }
	:: atomic { remote_waits -> remote_waits = false; remote_msg = false; streak = 0 }	/* gives up */
	:: atomic { hold[REMOTE] -> hold[REMOTE] = false; WHEN(key == REMOTE, free(REMOTE)) }
	od
}

/* Time does not pass while a call waits to run, or a caller, resolver or notified process must act. */
#define RESTS(o) (doubt[o] == UNSURE || doubt[o] == 0 && (!hold[o] || left[o]) \
	&& (call[o] == 0 && from[o] == 0 || call[o] == OFFERED))

active proctype Clock() {
	do
	:: d_step {
		RESTS(1) && RESTS(2) && RESTS(3) && !remote_msg;
		CHECK(leaves_nothing, key == 0 || key == REMOTE || call[key] || doubt[key] || hold[key]);
		CHECK(no_overlap, !hold[REMOTE] || key == REMOTE);
		for (i : 1 .. LOCALS) {
			CHECK(ends_first, !hold[i] || key == i);
			left[i] = MAX(left[i], 1) - 1
		}
		naps = false;
		ttl = MAX(ttl, 1) - 1;
		WHEN(key && ttl == 0,
			CHECK(ends_first, key == REMOTE || !hold[key]);
			hold[REMOTE] = hold[REMOTE] && key != REMOTE; key = 0)
	}
	od
}
