package main

const runHelp = `Runs COMMAND while holding the lock NAME, and frees the lock when COMMAND has
ended. Standard input and outputs, and the exit code, are COMMAND's own. SIGINT,
SIGTERM, SIGHUP and SIGQUIT are passed on to its process group.

If the lock is lost, COMMAND's process group gets SIGTERM, and SIGKILL before
anybody else can get the lock. If redlatch is killed, so is COMMAND (on Linux with
its children, whatever happens; on Windows not). Processes that COMMAND leaves
running in the background go on without the lock.

With --fair the lock is Redisson's fair lock: those who wait stand in a queue on the
server, and --try gets a free lock only when nobody is queued. Use --fair for all
users of a name or for none: the two kinds exclude each other, but neither wakes the
other's waiters.

Exit codes:
  124   the lock was not acquired (--conflict-exit-code changes this)
  125   redlatch failed, or the lock was lost while COMMAND ran
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

  # At most 5 minutes; a crash of this machine frees the lock by then
  redlatch run --lease 5m backup -- ./backup.sh

  # In the order of arrival
  redlatch run --fair publish -- ./publish.sh

  # A renewed lease of 6 seconds: a crash frees the lock soon
  redlatch run --watchdog 6s leader -- ./serve`
