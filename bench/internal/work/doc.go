// Package work is the side of the benchmark that takes locks: a process that gets its work
// line by line, does it with one contestant, and reports the result.
//
// # The conversation
//
// Each line is one JSON value. The Java contestant, bench/java, uses the same.
//
//	runner                         worker
//	{Spec}              ────────▶  opens the contestant, starts, warms up
//	                    ◀────────  {"event":"ready"}
//	asks the server
//	"go"                ────────▶  counts from here, for Spec.Duration
//	                    ◀────────  {"event":"measured","values":{…}}
//	asks the server
//	"stop"              ────────▶  ends it all
//	                    ◀────────  {"event":"done","error":"…"}
//
// The work goes on between "measured" and "stop", so that the server's figures cover
// nothing but work. The end of the input ends the process.
//
// # The work
//
//	pairs     goroutines lock and unlock, each a key of its own
//	turns     goroutines lock and unlock the same key
//	wakeup    one holds, one waits: from the unlock to the other's return
//	idle      goroutines wait for a lock, or each for its own, which is never freed
//	watchdog  locks are held, and renewed
//
// A goroutine that finds itself in a lock with another is an error in every case.
package work
