// Package runner runs a command for as long as a lock is held, and no longer.
//
//	Find ─▶ (the lock is taken) ─▶ Start ─▶ Supervise ─▶ (the lock is freed)
//
// # Processes
//
//	redlatch ──pipe, held by redlatch alone──▶ guard ┐
//	    └────────────────────────────────────▶ command ┤ one process group
//	                                             └ its children ┘
//
// On Linux and other Unix systems the command runs in a process group of its
// own, so that a signal reaches its children too. The group's leader is the
// guard, a second redlatch that does nothing but read a pipe. If redlatch dies,
// however it dies, the pipe ends without the byte that means goodbye, and the
// guard kills the group with SIGKILL. On Linux the kernel also kills the command
// itself at the very moment (PR_SET_PDEATHSIG); the command is therefore started
// from an OS thread that lives as long as the command. A process that leaves the
// group (setsid) is out of reach. On Windows there are no process groups: the
// command alone is killed when the lock is lost, and nothing is killed when
// redlatch is.
//
// # Loss
//
// A hold ends before the lease does, by the loss margin. [Supervise] then sends
// SIGTERM to the group, waits for the grace, and sends SIGKILL to what is left, unless
// its [Action] says otherwise. [Grace] is shorter than the margin, so that the SIGKILL
// comes before the server can grant the lock to another owner.
//
// # Terminals
//
// When redlatch is the foreground job of a terminal and that is its standard
// input, the command's group becomes the foreground group: it may read, and
// Ctrl-C goes to it directly. A command that is suspended suspends redlatch. When
// redlatch goes on and the lease ran out meanwhile, the command does not go on:
// it is killed.
package runner
