// Package luasrc holds the Lua scripts that change locks, one file each.
//
// A lock is one hash: a field per owner, whose value counts how often that
// owner has entered, and a time to live, which is the lease. The key is there
// if and only if the lock is held:
//
//	          acquire                acquire, same owner
//	free ───────────────▶ held(1) ─────────────────────▶ held(n)
//	 ▲                      │  ▲                            │
//	 │  release to 0        │  └──── release to 1 ──────────┤
//	 ├──────────────────────┴───────────────────────────────┤
//	 │  force release, or the lease runs out                │
//	 └──────────────────────────────────────────────────────┘
//
// [Acquire], [ForceRelease] and [Renew] leave the state and send the messages
// that Redisson's scripts do, so that programs of both kinds share locks.
// [Release] leaves the same state in the ordinary course, but carries the count
// it aims at in place of a step down by one. Running it late or twice is
// harmless, hence it writes no unlock latch, which Redisson needs for that; to
// an owner that is gone it answers nil each time. [Pass] does what a release and an
// acquire right behind it do, in one step and without the message in between.
//
// # The fair lock
//
// A fair lock has the same hash and two keys more: the queue, a list of the owners
// that wait, and the timeouts, a sorted set that gives each of them a deadline. An
// owner whose deadline has come, by the clock of the client that asks, counts as
// dead. It is removed when it is at the head of the queue, and nowhere else.
//
//	                        acquire, when free and no other is before it
//	    ┌────────────────────────────────────────────────────────────────┐
//	    │                                                                ▼
//	outside ──────────▶ queued ────────────▶ head ────────────────────▶ held
//	    ▲    acquire      │  those before      │  acquire, when free      │
//	    │                 │  it have left      │                          │
//	    └─────────────────┴────────────────────┴──────────────────────────┘
//	         give up         give up, or dead      release, or the lease runs out
//
// A deadline is the end of the lease, or the deadline of the one before, plus the
// owner's own wait. So an owner that takes the lock ([FairTry], [FairAcquire]) or
// gives up ([FairGiveUp]) subtracts its wait from the deadlines of others again. A
// release wakes the head alone, on a channel of its own. All this is as in
// Redisson, down to queues and timeouts that disagree, which a failure can leave
// behind. There are these differences, on purpose:
//
//   - [FairReenter] and [FairRelease] have a target, as Reenter and Release have.
//   - A release of a lock that was free wakes the head, as in Redisson, but
//     answers 2 instead of 1, so that a lost hold is not taken for a released one.
//   - [FairGiveUp] wakes those in front when the lock is free. The owner that leaves
//     may have been the one that was woken; without that, the next would sleep on.
//
// # Keeping the queue
//
// In Redisson deadlines that its own rules cannot keep take places away from the
// living, and the dead stand in the way until theirs have come. Three scripts that
// Redisson does not have mend both, for its waiters, too. They use its keys, and
// write nothing there that its scripts could not find anyway:
//
//   - [FairHeartbeat] puts the deadlines of one process's waiters off, and those of
//     others where they would fall out of step; it removes no waiter.
//   - [FairEvict] takes out the first while it is known to be dead, as if its
//     deadline had come.
//   - [FairNudge] wakes the first of a free lock once more.
//
// The caller has to know which waiters are alive and which are dead.
//
// # The read/write lock
//
// Its hash has a mode, the owners of readers, and at most one of the writer, in a form of its
// own. Each hold of a reader has a key, which lives for the hold's lease: by these keys a
// release tells readers that are alive from those that crashed. A release asks for all of
// them, so it costs the server by the number of holds of readers. [Reenter], [Renew] and
// [Replicate] serve the writer as they are. On purpose different from Redisson's: no script
// makes the lock last shorter than a hold is owed, and the end of the writer's last hold wakes
// all that wait, also when its own reads remain.
//
// # Shared functions
//
// What several scripts do stands once, as a function in the folder shared. The line
// "-- Uses:" in a file's header names the functions that the file calls. They are put
// in front of the script when the program starts. They read neither KEYS nor ARGV.
//
// # On every server
//
// Every script runs unchanged on Redis from 6.0 on, on Valkey, and on the
// in-process server of package embedded. Therefore the scripts turn texts into
// numbers, never the other way round, rely on no order of hash fields, unpack no
// more than a thousand values, and use no libraries but string and math. They
// keep no global variables.
//
// Every script has at least one key, because some servers refuse scripts without. Scripts
// declare all keys that they use, except the keys of readers' holds: the caller does not know
// the other readers. Scripts that use those have a flag for Dragonfly.
//
// # The contract of a script
//
// The comment on top of each file is its contract: keys, arguments, replies, effects
// and messages; a test holds it and the code together. All scripts have one order of
// KEYS and one of ARGV, which stand in docs/protocol.md, and each script has those that
// it needs. [Plain], [Fair], [FillRenew] and [FillReplicate] fill the calls. So a change
// of a script's arguments touches the script, its method, and docs/protocol.md.
package luasrc

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/redlatch/redlatch/transport"
)

// files are the scripts, and in the folder shared the functions that several of them
// use: the fragments, one in each file.
//
//go:embed *.lua shared/*.lua
var files embed.FS

// undeclared is a comment to all servers but Dragonfly, which otherwise refuses keys that are
// not among KEYS. It must be the first line.
const undeclared = "--!df flags=allow-undeclared-keys\n"

// load returns the script of a file: its text behind the fragments that it uses.
func load(name string) *transport.Script { return loadAfter("", name) }

// guarded is load with the guard.
func guarded(name string) *transport.Script { return loadAfter(guard, name) }

// loadAfter is load with a text before the script's.
func loadAfter(before, name string) *transport.Script {
	joined := map[string]bool{}
	text := before + join(files, name+".lua", joined)
	if joined["hold_key"] {
		text = undeclared + text
	}
	return transport.NewScript(name, text)
}

// guard precedes scripts that publish, or whose release will. If the call has three more arguments,
// the publish command, the channel and engine.GuardArg, and the user may not publish to the channel,
// the script fails before it changes anything. Redis before version 7 cannot tell, nor can a server
// that does not know the command: the script runs.
const guard = `if ARGV[#ARGV] == 'guard' and redis.acl_check_cmd then
    local publish, channel = ARGV[#ARGV - 2], ARGV[#ARGV - 1]
    local known, may = pcall(redis.acl_check_cmd, publish, channel, '')
    local refused = known and not may and redis.pcall(publish, channel, '')
    if type(refused) == 'table' and refused.err then
        return redis.error_reply('NOPERM a release could not notify waiters: ' .. refused.err)
    end
end
`

// join returns a file's text behind the fragments that it and they use, each once. A
// fragment that does not exist is a panic.
func join(files fs.FS, file string, joined map[string]bool) string {
	text, err := fs.ReadFile(files, file)
	if err != nil {
		panic(fmt.Sprintf("luasrc: %v", err))
	}
	var all strings.Builder
	for _, fragment := range fragments(string(text)) {
		if !joined[fragment] {
			joined[fragment] = true
			all.WriteString(join(files, path.Join("shared", fragment+".lua"), joined))
		}
	}
	all.Write(text)
	return all.String()
}

// fragments returns what the line "-- Uses:" of a file's header names.
func fragments(text string) []string {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "--") {
			break
		}
		if names, found := strings.CutPrefix(line, "-- Uses:"); found {
			return strings.Fields(strings.ReplaceAll(names, ",", " "))
		}
	}
	return nil
}
