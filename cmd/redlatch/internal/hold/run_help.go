package hold

const runHelp = `Runs COMMAND while holding the lock NAME, and frees the lock when COMMAND has
ended. Standard input and outputs, and the exit code, are COMMAND's own.
SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to its
process group, as often as they come. COMMAND finds the lock's name in the
variable REDLATCH_LOCK and its owner, as redlatch status shows it, in
REDLATCH_OWNER; with --permits the semaphore's name and, in REDLATCH_PERMIT,
the permit's id, and no owner.

If the lock is lost, COMMAND's process group gets SIGTERM, and SIGKILL before
another owner can get the lock; --on-lost kill sends SIGKILL at once, --on-lost
ignore lets COMMAND go on and warns at its end. If redlatch is killed, so is
COMMAND (on Linux with its children, whatever happens, but for those that have
begun a session of their own; on Windows not).
--on-lost-exec CMD runs CMD, a command line of the shell, at the moment of the
SIGTERM: neither waits for the other, and redlatch waits for both. It finds the
lock and its owner in the variables above and the reason in REDLATCH_LOSS,
prints to standard error, and is killed after 10 seconds. It is not run when
--max-hold is over. A loss that is noticed only when the lock is freed counts.
Processes that COMMAND leaves running in the background go on without the lock.

With --max-hold COMMAND is ended, as after a loss, when it has held the lock
for that long. With --at-least the lock stays for that long from when it was
acquired, whatever COMMAND's exit code: a job that many machines start at about
the same time runs once when that is more than their clocks differ by, and at
most once per period when it is a little less than the period. redlatch stays
until then when that is within one lease (--watchdog), and else ends at once
and leaves the lock to a lease of what remains. A machine that dies leaves it
for one lease at most.

With --fair the lock is Redisson's fair lock: its waiters are in a queue on the
server, and --try gets a free lock only when the queue is empty. Use
--fair for all users of a name or for none: the two kinds exclude each other,
but neither wakes the other's waiters.

With --fenced, alone or with --fair, the lock has fencing tokens, as Redisson's
fenced lock: COMMAND finds a number in REDLATCH_TOKEN that is higher than that
of every holder before it. Pass it on with each write, to something that
refuses one below the highest that it has seen.

With --read or --write the lock is Redisson's read/write lock: readers hold it
together, a writer alone. Use one of the two for all users of a name. Where
the lock is held as another kind, run with --read or --write fails (125); run
without them waits, and asks every 10 seconds: it is not woken.

With --permits NAME:N, which stands in place of NAME, COMMAND runs under one of
the N permits of a semaphore: N commands run at a time, on all machines
together. The permit is renewed like a lock, so that of a machine that dies
comes back after one lease. While permits are taken, each start sets N anew;
where it has become smaller, no COMMAND is ended. Another number under NAME, of
which no permit is taken, may be something else's and is left alone: the exit
code is 125.

In a systemd unit with Type=notify the unit is ready when the lock is held; its
status says whether it waits, holds or has lost it.

With --wait or --try connecting is given up after --wait, too, but not before
2 seconds. A NAME that is that of a hash of something else is not waited for:
the exit code is 125.

Exit codes:
  124   the lock was not acquired (--conflict-exit-code changes this)
  125   redlatch failed or was typed wrong, the lock was lost while COMMAND
        ran, or --max-hold was over
  126   COMMAND was found but could not be run
  127   COMMAND was not found
  128+n COMMAND was ended by signal n
  else  COMMAND's own`

const runExamples = `  # Wait as long as it takes; the lease is renewed while the command runs
  redlatch run nightly-report -- ./report.sh --full

  # Give up after 10 seconds
  redlatch run --wait 10s deploy -- make deploy

  # Do nothing, successfully, when it runs already
  redlatch run --try --conflict-exit-code 0 import -- ./import.sh

  # A cron job of many machines, once an hour
  redlatch run --try --conflict-exit-code 0 --at-least 55m hourly -- ./job.sh

  # At most 5 minutes, then it is ended and the lock is free
  redlatch run --max-hold 5m backup -- ./backup.sh

  # With a number that a database can check
  redlatch run --fenced import -- sh -c './import --token "$REDLATCH_TOKEN"'

  # In the order of arrival
  redlatch run --fair publish -- ./publish.sh

  # Reports together, and the import alone
  redlatch run --read data -- ./report.sh
  redlatch run --write data -- ./import.sh

  # Five at a time, on all machines
  redlatch run --permits crawl:5 -- ./crawl.sh

  # A renewed lease of 6 seconds: a crash frees the lock soon
  redlatch run --watchdog 6s leader -- ./serve`
