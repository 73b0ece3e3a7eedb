package contest

// javaThreads is how many threads a JVM is asked for. Each goroutine elsewhere is a
// thread there, and 10,000 of those measure the system and not the lock.
const javaThreads = 1000

var redissonSends = []string{
	"evalsha", "eval", "subscribe", "unsubscribe", "ping", "hello", "client|setname", "client|setinfo", "script|load", "role",
}

// redisson is Redisson in a JVM of its own, which is kept and warm: see bench/java.
// It has its default settings but for its pools, which are enlarged, 64 connections
// for commands as all others here, and for messages enough for all waiters of a
// fair lock, for which each needs a channel of its own: with the default 50
// connections of 5 channels a queue of 1,000 does not move at all.
var redisson = Contestant{
	Name: "redisson", Role: Peer, Waits: true, Renews: true,
	Java: true, Most: javaThreads, Sends: redissonSends,
}

// redissonReadWrite is its read/write lock.
var redissonReadWrite = Contestant{
	Name: "redisson-rw", Role: Peer, ReadWrite: true, Waits: true, Renews: true,
	Java: true, Most: javaThreads, Sends: redissonSends,
}

// redissonFair is its fair lock.
var redissonFair = Contestant{
	Name: "redisson-fair", Role: Peer, Fair: true, Waits: true, Renews: true,
	Java: true, Most: javaThreads, Sends: redissonSends,
}

// redissonPermits are its permits with ids, which it does not renew: they have no lease.
var redissonPermits = Contestant{
	Name: "redisson-permits", Role: Peer, Semaphore: Permits, Waits: true,
	Java: true, Most: javaThreads, Sends: redissonSends,
}

// redissonCounter is its semaphore that only counts.
var redissonCounter = Contestant{
	Name: "redisson-counter", Role: Peer, Semaphore: Counter, Waits: true,
	Java: true, Most: javaThreads, Sends: redissonSends,
}
