/*
 * Transfer: callers of one process queue locally and pass a lock on, next to a waiter in another process.
 *
 * plain.pml explains the common parts. Every lost connection is fenced here, and every waiter is subscribed. A fault is
 * a lost reply, or a caller that leaves during its attempt.
 */
#ifndef BUG
#define BUG 0
#endif
#ifndef LOCALS
#define LOCALS 3
#endif
#ifndef FAULTS
#define FAULTS 2
#endif

#define LEASE 2
#define MARGIN 1
#define BURST 2
#define REMOTE (LOCALS + 1)	/* owners: local callers are 1 to LOCALS */

bit no_overlap, ends_first, leaves_nothing, turn_kept, remote_turn;	/* always 0 */
#define CHECK(property, holds) assert(property || (holds))

#define SENT 1
#define YES 2
#define NO 3
#define LOST 4
byte call[REMOTE], from[REMOTE], release[REMOTE];	/* from: the holder that passes the lock, 0 for an acquire */
#define UNSURE 1
#define CERTAIN 2
byte doubt[REMOTE];
byte key, ttl;

byte turn;	/* the local caller that may send calls about the lock */
byte ahead;	/* turns of the current burst */
bool owed;	/* the next caller must yield if another process waits */
bool yields[REMOTE], waiting[REMOTE], asleep[REMOTE], hold[REMOTE];
byte transfer[REMOTE], left[REMOTE];

#define TAKEN 1
#define NOT_HELD 2
#define NOT_SENT 3
#define UNCERTAIN 4
byte settled[REMOTE];
bool offers[REMOTE];	/* waits until its transfer is settled */

bool remote_waits, remote_holds, msg, remote_msg, came;	/* came: the other process released the lock */
byte streak;	/* holds in a row during the remote wait; 0 if no local caller waits */
byte faults = FAULTS;

inline free_key(by)
{
	key = 0; ttl = 0;
	msg = (turn && asleep[turn]); remote_msg = remote_waits; came = came || by == REMOTE
}

/* queue.Pass: the turn goes to some waiting caller (the model does not order them). */
inline pass_turn(released)
{
	ahead = (released -> ahead + 1 : ahead);
	if
	:: waiting[1] -> turn = 1
	:: waiting[2] -> turn = 2
#if LOCALS > 2
	:: waiting[3] -> turn = 3
#endif
	:: else -> turn = 0; ahead = 0; owed = false; streak = 0
	fi;
	if
	:: ahead >= BURST && BUG != 3 -> ahead = 0; owed = true; came = false
	:: else
	fi;
	waiting[turn] = false
}

/* queue.passLock: the turn goes together with the lock of owner o, unless the burst is over. */
#define MORE (waiting[1] || waiting[2] || (LOCALS > 2 && waiting[LOCALS]))
#define MAY_TRANSFER (MORE && (ahead + 1 < BURST || BUG == 3))
inline pass_lock(o) { pass_turn(true); transfer[turn] = o; settled[o] = 0 }

/* queue.passUnused: the caller leaves with the turn. */
inline leave_turn()
{
	if
	:: transfer[o] && MAY_TRANSFER -> pass_lock(transfer[o])
	:: else ->
		if
		:: transfer[o] -> settled[transfer[o]] = NOT_SENT
		:: else
		fi;
		pass_turn(false)
	fi;
	transfer[o] = 0
}

inline run_call(o)
{
	if
	:: (from[o] == 0 && key == 0) || (from[o] && (key == from[o] || BUG == 1)) ->
		key = o; ttl = LEASE; call[o] = (call[o] == LOST -> 0 : YES)
	:: else -> call[o] = (call[o] == LOST -> 0 : NO)
	fi
}

#define RUN(o) \
	:: atomic { call[o] == SENT || call[o] == LOST -> run_call(o) } \
	:: atomic { release[o] == SENT && key == o -> free_key(o); release[o] = 0 } \
	:: atomic { release[o] == SENT && key != o -> release[o] = 0 } \
	:: atomic { doubt[o] == UNSURE -> call[o] = 0; doubt[o] = CERTAIN } \
	:: atomic { doubt[o] == CERTAIN -> \
		if :: key == o -> free_key(o) :: else fi; \
		CHECK(leaves_nothing, key != o && call[o] == 0); \
		doubt[o] = 0; if :: turn == o -> pass_turn(false) :: else fi }

active proctype World()
{
	do
	RUN(1) RUN(2)
#if LOCALS > 2
	RUN(3)
#endif
	od
}

#define RESTS(o) (call[o] != SENT && call[o] != YES && call[o] != NO && release[o] == 0 && doubt[o] != CERTAIN \
	&& !(hold[o] && left[o] == 0) && !transfer[o] && !(offers[o] && (settled[o] || left[o] == 0)))
#define MINDED(o) (call[o] || release[o] || doubt[o] || hold[o] || offers[o])

active proctype Clock()
{
	byte o;
	do
	:: d_step {
		RESTS(1) && RESTS(2) && (LOCALS < 3 || RESTS(LOCALS)) && !remote_msg;
		CHECK(no_overlap, !remote_holds || key == REMOTE);
		for (o : 1 .. LOCALS) {
			CHECK(ends_first, !hold[o] || key == o);
			left[o] = (left[o] -> left[o] - 1 : 0);
			yields[o] = false; asleep[o] = false
		}
		CHECK(leaves_nothing, key == 0 || key == REMOTE || MINDED(key));
		if
		:: ttl == 1 ->
			CHECK(ends_first, key == REMOTE || !hold[key]);
			remote_holds = remote_holds && key != REMOTE; key = 0; ttl = 0
		:: else -> ttl = (ttl -> ttl - 1 : 0)
		fi;
		o = 0
	}
	od
}

inline granted(o)
{
	CHECK(ends_first, key == o);
	hold[o] = true; left[o] = LEASE - MARGIN; streak = (remote_waits -> streak + 1 : 0);
	CHECK(no_overlap, !remote_holds && !hold[1 + (o % LOCALS)] && (LOCALS < 3 || !hold[1 + ((o + 1) % LOCALS)]));
	CHECK(remote_turn, streak <= BURST)
}

active [LOCALS] proctype Local()
{
	byte o = _pid - 1;

start:	atomic {
		CHECK(turn_kept, turn != o || doubt[o]);
		call[o] == 0 && release[o] == 0 && doubt[o] == 0 && !(turn == o);
		if
		:: turn == 0 -> turn = o
		:: else -> waiting[o] = true
		fi }
	if
	:: atomic { turn == o && transfer[o] && BUG == 5 ->
		settled[transfer[o]] = TAKEN; transfer[o] = 0; granted(o); goto held }	/* without a call */
	:: atomic { turn == o && transfer[o] && BUG != 5 -> from[o] = transfer[o]; transfer[o] = 0; call[o] = SENT }
	:: atomic { turn == o && !transfer[o] && owed && remote_waits -> owed = false; yields[o] = true; goto yield }
	:: atomic { turn == o && !transfer[o] && !(owed && remote_waits) -> owed = false;
try:		asleep[o] = false; msg = false; from[o] = 0; call[o] = SENT }
	:: atomic { turn == o ->
		if
		:: BUG == 4 -> transfer[o] = 0
		:: else -> leave_turn()
		fi;
		goto start }
	:: atomic { waiting[o] -> waiting[o] = false; goto start }
	fi;
	if
	:: atomic { call[o] == YES -> call[o] = 0;
		if
		:: from[o] -> settled[from[o]] = TAKEN
		:: else
		fi;
		from[o] = 0; granted(o); goto held }
	:: atomic { call[o] == NO && from[o] -> settled[from[o]] = NOT_HELD; goto try }
	:: atomic { call[o] == NO && from[o] == 0 -> call[o] = 0; asleep[o] = true }
	:: atomic { call[o] && faults > 0 -> faults--;	/* in doubt: it keeps the turn until it is resolved */
		if
		:: from[o] -> settled[from[o]] = UNCERTAIN
		:: else
		fi;
		call[o] = (call[o] == SENT -> LOST : 0); doubt[o] = UNSURE; goto start }
	fi;
	if
	:: atomic { msg || !asleep[o] -> goto try }
	:: atomic { true -> asleep[o] = false; pass_turn(false); goto start }
	fi;
yield:	if
	:: atomic { came || !yields[o] -> yields[o] = false; goto try }
	:: atomic { true -> yields[o] = false; owed = true; pass_turn(false); goto start }
	fi;

held:	if
	:: atomic { left[o] == 0 -> hold[o] = false; doubt[o] = CERTAIN;
		streak = (streak -> streak - 1 : 0); goto start }	/* a lost hold does not count as a turn */
	:: atomic { left[o] && MAY_TRANSFER -> hold[o] = false; pass_lock(o); offers[o] = (BUG != 2); left[o] = (BUG == 2 -> 0 : left[o]) }
	:: atomic { left[o] && !MAY_TRANSFER ->
		hold[o] = false; left[o] = 0; release[o] = SENT; pass_turn(true); goto start }
	fi;
	if	/* the lock was offered to the next caller */
	:: atomic { settled[o] == TAKEN || settled[o] == NOT_HELD || BUG == 2 -> offers[o] = false; left[o] = 0; settled[o] = 0 }
	:: atomic { settled[o] >= NOT_SENT && BUG != 2 -> offers[o] = false; left[o] = 0; settled[o] = 0; release[o] = SENT }
	:: atomic { left[o] == 0 && settled[o] == 0 && BUG != 2 -> offers[o] = false; doubt[o] = CERTAIN }
	fi;
	goto start
}

active proctype Remote()
{
	do
	:: atomic { !remote_holds && (!remote_waits || remote_msg || true) ->	/* called, woken, or polls */
		remote_msg = false;
		if
		:: key == 0 -> key = REMOTE; ttl = LEASE; remote_holds = true; remote_waits = false; streak = 0;
			CHECK(no_overlap, !hold[1] && !hold[2] && (LOCALS < 3 || !hold[LOCALS]))
		:: else -> remote_waits = true
		fi }
	:: atomic { remote_waits -> remote_waits = false; remote_msg = false; streak = 0 }	/* gives up */
	:: atomic { remote_holds -> remote_holds = false;
		if :: key == REMOTE -> free_key(REMOTE) :: else fi }
	od
}
