package hold

// docs/shell.md has the details.
const (
	runHelp = `Runs COMMAND while holding the lock NAME, and frees the lock when COMMAND has
ended. Standard input and outputs, and the exit code, are COMMAND's own.
SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to its
process group. COMMAND finds the lock's name in REDLATCH_LOCK and its owner, as
redlatch status shows it, in REDLATCH_OWNER.

If the lock is lost, COMMAND's process group gets SIGTERM, and SIGKILL before
another owner can get the lock. --on-lost kill sends SIGKILL at once, and
--on-lost ignore lets COMMAND go on. A loss that is noticed only when the lock
is freed counts. If redlatch is killed, so is COMMAND (on Linux with its
children, but for those in a session of their own; on Windows not). Processes
that COMMAND leaves in the background go on without the lock. --on-lost-exec
CMD runs a command line of the shell at the moment of the SIGTERM; redlatch
waits for both. It finds the reason in REDLATCH_LOSS, and is not run when
--max-hold is over.

With --at-least the lock stays for that long from when it was acquired,
whatever COMMAND's exit code: a job that many machines start at about the same
time runs once when that is more than their clocks differ by, and at most once
per period when it is a little less than the period. redlatch waits until then
if that is within one lease (--watchdog), and else leaves the lock to a lease
of what remains. A machine that dies leaves it for one lease at most.

Use one kind of lock for all users of a name: plain, --fair, or --read and
--write. Plain and fair locks exclude each other, but do not wake each other's
waiters; a read/write lock fails (125) where the lock is held as another kind,
and any lock where NAME is the hash of another program.
With --fair, --try gets a free lock only when the queue is empty. With
--fenced, alone or with --fair, COMMAND finds a number in REDLATCH_TOKEN that
is higher than that of every holder before it: pass it on with each write, to
something that refuses one below the highest that it has seen.

With --permits NAME:N, in place of NAME, COMMAND runs under one of the N
permits of a semaphore, whose id is in REDLATCH_PERMIT: N commands run at a
time, on all machines. The permit of a machine that dies comes back after one
lease. While permits are taken, each start sets N anew. Another number under
NAME, of which no permit is taken, may be something else's: it is left alone
(125).

In a systemd unit with Type=notify the unit is ready when the lock is held.
With --wait or --try connecting is given up after --wait, too, but not before
2 seconds.

Exit codes:
  124   the lock was not acquired (--conflict-exit-code changes this)
  125   redlatch failed or was typed wrong, the lock was lost while COMMAND
        ran, or --max-hold was over
  126   COMMAND was found but could not be run
  127   COMMAND was not found
  128+n COMMAND was ended by signal n
  else  COMMAND's own`

	runExamples = `  # Wait as long as needed; the lease is renewed while the command runs
  redlatch run nightly-report -- ./report.sh --full

  # Give up after 10 seconds
  redlatch run --wait 10s deploy -- make deploy

  # A cron job of many machines, once an hour
  redlatch run --try --conflict-exit-code 0 --at-least 55m hourly -- ./job.sh

  # At most 5 minutes, then it is ended and the lock is free
  redlatch run --max-hold 5m backup -- ./backup.sh

  # With a number that a database can check
  redlatch run --fenced import -- sh -c './import --token "$REDLATCH_TOKEN"'

  # Five at a time, on all machines
  redlatch run --permits crawl:5 -- ./crawl.sh`

	holdHelp = `Takes the lock NAME, prints its owner, and holds it in the foreground until
SIGTERM, SIGINT or SIGHUP, or, with --for-pid, until the process PID has ended.
Then it frees the lock and exits with 0. With --fenced a second line is the
fencing token; with --permits the permit's id is printed in place of the owner.

For one command redlatch run is better: it ends the command when the lock is
lost. A script that holds a lock goes on after a loss unless --on-lost-signal
sends it a signal; redlatch release tells it at the end.

With -s, in a script of sh, a process in the background holds the lock:

    eval "$(redlatch hold -s --for-pid $$ deploy)" || exit
    ./deploy.sh
    redlatch release

It ends with redlatch release, or when the script ends, also by SIGKILL. If it
is killed itself, the lock stays for one lease at most. REDLATCH_LOCK,
REDLATCH_OWNER, REDLATCH_HOLD and REDLATCH_HOLD_PID are set and exported, and
REDLATCH_TOKEN with --fenced; with --permits REDLATCH_PERMIT is in place of the
owner. Where the lock was not had, they are unset, and eval fails with the exit
code. Without --for-pid the lock is held for the parent process: in a pipe that
is a subshell, which ends at once.

--at-least leaves the lock to a lease of what remains, or to the one it has if
that ends later, and does not wait. In a systemd unit with Type=notify the
unit is ready when the lock is held; a hold of -s sends nothing. On Windows
there is no -s, and KILL is the only signal.

Exit codes:
  0     the lock was held until it was not needed any more, or -s holds it
  124   the lock was not acquired (--conflict-exit-code changes this)
  125   redlatch failed, the lock was lost, --max-hold was over, or the process
        of --for-pid ended while the lock was waited for
  128+n signal n ended the waiting: 130 SIGINT, 143 SIGTERM`

	holdExamples = `  # A script that ends when it loses the lock
  eval "$(redlatch hold -s --for-pid $$ --on-lost-signal TERM deploy)" || exit
  ./deploy.sh
  redlatch release

  # By hand, while looking around; Ctrl-C frees it
  redlatch hold maintenance

  # While another program runs
  redlatch hold --for-pid 4711 backup`

	releaseHelp = `Frees the lock that redlatch hold -s holds in the background, and waits until
that is done. The variables that hold -s has set say which; with NAME it is
an error if they are those of another lock. With --owner it is the hold of that
owner, by the same user on this machine: the value of REDLATCH_OWNER, or of
REDLATCH_PERMIT for a permit. Windows has no release.

Exit codes:
  0     the lock was held to this moment, and is free, or left to its lease
        for --at-least
  125   the lock was lost, or its hold had ended before, or redlatch failed;
        standard error says which
  128+n signal n ended the waiting: 130 SIGINT, 143 SIGTERM`

	releaseExamples = `  # The lock of this script
  redlatch release

  # Two locks: each hold sets the same variables
  eval "$(redlatch hold -s data)" || exit; data=$REDLATCH_OWNER
  eval "$(redlatch hold -s index)" || exit
  redlatch release index
  redlatch release --owner "$data"`
)
