// Package listing finds the locks on a server, whoever made them, with commands that
// are short for the server however many keys it has.
//
// A lock has no mark but its shape, so all hashes are looked at:
//
//	SCAN … MATCH pattern TYPE hash      1,000 keys at a time
//	   │  names of hashes
//	   ▼
//	HSCAN name, a few fields            is it a lock? one field uuid:number with a count,
//	   │                                or several beside a field "mode"
//	   │  locks
//	   ▼
//	PTTL, LLEN queue, GET labels        what there is to tell; 200 locks at a time
//
//	SCAN … MATCH redisson_lock_queue:* TYPE list
//	   │  queues that were not seen yet: their locks are free
//	   ▼
//	as above
//
// KEYS and HGETALL are not used: one blocks the server for as long as it has keys,
// the other for as long as somebody's hash has fields. Between the commands about one
// lock others may change it; a lock that is gone by then is left out.
//
// What is found is handed on at once. What is kept of it is a number for each lock,
// up to a limit, so that the same lock is not told twice: SCAN may return a key more
// than once. Beyond the limit it may be.
//
// A plain lock and a fair one that nobody waits for look alike on the server: a lock
// is called fair when it has a queue.
//
// [ShapeOf] is what says of fields whether they are a lock's, also for those who look at
// one lock, which [Glance] does without reading all of a hash. [ReadersLeft] asks for
// the leases of those who read.
package listing
