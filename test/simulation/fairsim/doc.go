// Package fairsim simulates fleets that share one fair lock, on a fake clock.
//
// A fleet is processes of Redlatch and of Redisson whose workers wait for the lock, hold
// it, and come again. They are killed, stand still, lose connections, interrupt threads,
// give up, and have clocks that are wrong; the server is restarted. What happens to the
// lock is decided by internal/test/fairmodel, and what Redlatch's processes decide, by the
// product's own internal/fairqueue/liveness, driven as the engine drives it. No goroutine
// and no real time is involved: months of a fleet take minutes, and a seed determines all
// that happens.
//
//	config.go     what is simulated
//	clock.go      fake time: a heap of events
//	server.go     the server: the model, leases, listeners, messages
//	process.go    a process: its connection, its clock, and its troubles
//	redisson.go   threads of Java, with the oddities that they have
//	redlatch.go   waiters of this library; heartbeat.go: its heartbeat
//	judge.go      what must be so, and what is counted
//
// The judge knows what no process knows: which processes are alive. It counts live waiters
// that lose their places or are overtaken, and the time for which the lock is free with
// live waiters; it checks deadlines and evictions against what the documentation promises.
//
// It is for tests and tools: no program of a user's contains it.
package fairsim
