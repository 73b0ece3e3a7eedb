// Package inspect reads locks: one at a moment, or all on a server, and says what is known of
// them. It writes nothing, neither to the server nor to a terminal. Its types have the JSON that
// commands print.
//
//	one lock    Glance ─▶ is it a lock? ─▶ Read ─▶ Snapshot ─▶ Renewal, Part
//	all locks   RunOnMasters ─▶ Run ─▶ Lock
//	a number    NumberAt ─▶ Lock
//
// Read has the lock and its queue as they were at one moment. It reads all holders by one script, so
// Glance first looks whether the hash is a lock, with a command that is short for the server.
//
// Run finds the locks of all clients, with commands that are short however many keys there are. A
// lock has no mark but its shape, so all hashes are looked at:
//
//	SCAN … MATCH pattern TYPE hash      250 keys at a time
//	   │  names of hashes
//	   ▼
//	HSCAN name, a few fields            is it a lock? one field uuid:number with a count,
//	   │                                or several and a field "mode"
//	   │  locks
//	   ▼
//	PTTL, LLEN queue, GET labels        the details; 200 locks at a time
//
//	SCAN … MATCH redisson_lock_queue:* TYPE list
//	   │  queues that were not seen yet: their locks are free
//	   ▼
//	as above
//
//	SCAN … MATCH *:timeout TYPE zset
//	   │  permits, beside a number
//	   ▼
//	GETRANGE, PTTL, ZCOUNT permits      a semaphore, if the first permit has 16 bytes
//
// A semaphore of which no permit is taken, a plain one and a count-down latch are a number, as
// other programs have them. They are looked for when that is asked for only.
//
// KEYS and HGETALL are not used for that: one blocks the server for as long as it has keys, the
// other for as long as a hash, which need not be a lock, has fields. Between the commands
// about one lock other clients may change it; a lock that is gone by then is left out.
//
// Locks are handed on as they are found. What is kept is a number for each lock, up to a
// limit, so that no lock is reported twice: SCAN may return a key more than once. Beyond
// the limit it may be.
//
// A plain lock and a fair one with an empty queue look alike on the server: a lock is
// called fair when it has a queue.
package inspect
