package hold

const (
	runHelp = `Runs COMMAND while holding the lock NAME, and releases the lock when COMMAND
exits. COMMAND inherits standard input, output and error, and redlatch exits
with its exit code. SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are
forwarded to its process group. COMMAND finds the name of the lock in
REDLATCH_LOCK, and its owner, as shown by redlatch status, in REDLATCH_OWNER.
--context sets REDLATCH_CONTEXT for it; --redis clears it, and so do --tls
flags unless the context has TLS itself. If REDIS_URL, which may name another
program's server, is not set, --redis sets it, with --user and as rediss:// for
--tls flags, unless the address contains a password; --context sets it unless
the server needs a user, a password or TLS files. If --tls flags clear
REDLATCH_CONTEXT, --context sets REDIS_URL as --redis does. If redlatch sets
REDIS_URL, it clears REDIS_PASSWORD unless it used that password. The current
context of the config file is not used.

If the lock is lost, COMMAND's process group gets SIGTERM, and SIGKILL before
another owner can acquire the lock. With --on-lost kill it gets SIGKILL
immediately; with --on-lost ignore COMMAND continues. A loss detected only on
release also counts. If redlatch is killed, COMMAND is killed with it: on Linux
including its children, except those in their own session; on Windows it is
not. Background processes of COMMAND continue without the lock.
--on-lost-exec CMD runs a shell command line when SIGTERM is sent; redlatch
waits for both. REDLATCH_LOSS contains the reason. CMD does not run when
--max-hold expires.

--at-least keeps the lock for a minimum time after it was acquired, regardless
of COMMAND's exit code. If many machines start a job at about the same time, it
runs once if this time exceeds the difference between their clocks, and at most
once per period if it is slightly shorter than the period. If the rest of this
time is within one lease (--watchdog), redlatch waits; otherwise, and after a
signal except SIGUSR1 and SIGUSR2, it sets a lease for the rest and exits. If
the machine dies while COMMAND runs, the lock expires after at most one lease.

All users of a name must use the same kind of lock: plain, --fair, or --read
and --write. Plain and fair locks exclude each other, but do not notify each
other's waiters. A read/write lock fails with 125 if the lock is held as
another kind, and every lock does if NAME is another program's hash.
With --fair, --try acquires a free lock only if the queue is empty. With
--fenced, alone or with --fair, REDLATCH_TOKEN contains a number that is higher
than the numbers of all previous holders. Pass it with each write to a store
that rejects numbers below the highest one it has seen.

With --permits NAME:N instead of NAME, COMMAND runs under one of the N permits
of a semaphore, so at most N commands run concurrently on all machines.
REDLATCH_PERMIT contains the permit's ID. If a machine dies, its permit is
released after one lease. While permits are in use, each start sets N again. If
NAME has another number and no permit is in use, it may belong to another
program: redlatch fails with 125 and keeps it.

In a systemd unit with Type=notify, the unit is ready when the lock is held.
With --wait or --try, connecting also times out after --wait, but not before
2 seconds.

Exit codes:
  124   the lock was not acquired (--conflict-exit-code changes this)
  125   redlatch failed, the command line is invalid, the lock was lost while
        COMMAND ran, or --max-hold expired
  126   COMMAND was found but could not be run
  127   COMMAND was not found
  128+n COMMAND was terminated by signal n
  else  COMMAND's exit code`

	runExamples = `  # Wait as long as needed; the lease is renewed while the command runs
  redlatch run nightly-report -- ./report.sh --full

  # Give up after 10 seconds
  redlatch run --wait 10s deploy -- make deploy

  # A cron job on many machines, once an hour
  redlatch run --try --conflict-exit-code 0 --at-least 55m hourly -- ./job.sh

  # Stop the command after at most 5 minutes
  redlatch run --max-hold 5m backup -- ./backup.sh

  # With a token that a database can check
  redlatch run --fenced import -- sh -c './import --token "$REDLATCH_TOKEN"'

  # Five at a time, on all machines
  redlatch run --permits crawl:5 -- ./crawl.sh`

	holdHelp = `Acquires the lock NAME, prints its owner, and holds the lock in the foreground
until SIGTERM, SIGINT or SIGHUP arrives or, with --for-pid, the process PID
exits. It then releases the lock and exits with 0. With --fenced, the second
line is the fencing token. With --permits, the first line is the permit's ID
instead of the owner.

For a single command, prefer redlatch run, which stops the command when the
lock is lost. A script that holds a lock continues after a loss unless
--on-lost-signal sends it a signal; redlatch release reports the loss.

With -s, in a script for sh, a background process holds the lock:

    eval "$(redlatch hold -s --for-pid $$ deploy)" || exit
    ./deploy.sh
    redlatch release

The background process exits on redlatch release, or when the script exits,
even by SIGKILL. If the background process is killed, the lock expires after at
most one lease. eval sets and exports REDLATCH_LOCK, REDLATCH_OWNER,
REDLATCH_HOLD and REDLATCH_HOLD_PID, with --fenced also REDLATCH_TOKEN, and
with --permits REDLATCH_PERMIT instead of the owner. Like run, it may also set
REDLATCH_CONTEXT and REDIS_URL, and clear REDIS_PASSWORD. If the lock was not
acquired, it unsets the REDLATCH variables of the lock and fails with the exit
code. Without --for-pid, the lock is held until the parent process exits; in a
pipe, that is a subshell, which exits immediately.

--at-least sets a lease for the rest of the time and does not wait. In a
systemd unit with Type=notify, the unit is ready when the lock is held; -s does
not notify systemd. On Windows, -s is not available, and KILL is the only
signal.

Exit codes:
  0     the lock was held as long as needed, or -s is holding it
  124   the lock was not acquired (--conflict-exit-code changes this)
  125   redlatch failed, the lock was lost, --max-hold expired, or the process
        of --for-pid exited while waiting for the lock
  128+n signal n ended the wait: 130 SIGINT, 143 SIGTERM`

	holdExamples = `  # A script that ends when it loses the lock
  eval "$(redlatch hold -s --for-pid $$ --on-lost-signal TERM deploy)" || exit
  ./deploy.sh
  redlatch release

  # Manually, during an investigation; Ctrl-C releases it
  redlatch hold maintenance

  # While another program runs
  redlatch hold --for-pid 4711 backup`

	releaseHelp = `Releases the lock that redlatch hold -s holds in the background, and waits for
the release to complete. The variables set by hold -s identify the lock; it is
an error if NAME is given and they refer to another lock. --owner selects the
hold of that owner, by the same user on this machine: the value of
REDLATCH_OWNER, or of REDLATCH_PERMIT for a permit. Not available on Windows.

Exit codes:
  0     the lock was held until now and is free, or expires by --at-least
  125   the lock was lost, its hold had already ended, or redlatch failed; see
        standard error
  128+n signal n ended the wait: 130 SIGINT, 143 SIGTERM`

	releaseExamples = `  # The lock of this script
  redlatch release

  # Two locks: each hold sets the same variables
  eval "$(redlatch hold -s data)" || exit; data=$REDLATCH_OWNER
  eval "$(redlatch hold -s index)" || exit
  redlatch release index
  redlatch release --owner "$data"`
)
