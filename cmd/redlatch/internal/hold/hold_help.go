package hold

const holdHelp = `Takes the lock NAME, prints its owner, and holds it in the foreground until
SIGTERM, SIGINT or SIGHUP, or, with --for-pid, until the process PID has ended.
Then it frees the lock and exits with 0. With --fenced a second line is the
fencing token; with --permits the permit's id is printed in place of the owner.

For one command redlatch run is better: it ends the command when the lock is
lost. A script that holds a lock goes on after a loss unless --on-lost-signal
sends it a signal; redlatch release tells it at the end.

With -s, in a script of sh, a process in the background holds the lock:

    eval "$(redlatch hold -s deploy)" || exit
    ./deploy.sh
    redlatch release

It has a session of its own and keeps no file of the script open. It ends with
redlatch release, or when the script ends, also by SIGKILL. If it is killed
itself, the lock stays for one lease at most. REDLATCH_LOCK, REDLATCH_OWNER,
REDLATCH_HOLD and REDLATCH_HOLD_PID are set and exported, and REDLATCH_TOKEN
with --fenced; with --permits REDLATCH_PERMIT is in place of the owner. Where
the lock was not had, they are unset, and what is printed makes eval fail with
the exit code.

With -s --for-pid is the parent process. --for-pid $$ is surer: in a pipe, or
with other commands beside it in $( ), the parent is a subshell, which ends at
once, and the lock with it. $$ is the script itself in all of them.
A number that another process has got since is not taken for the old one; on
systems other than Linux and Windows it can be, within a second.

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

const holdExamples = `  # A script that ends when it loses the lock
  eval "$(redlatch hold -s --for-pid $$ --on-lost-signal TERM deploy)" || exit
  ./deploy.sh
  redlatch release

  # By hand, while looking around; Ctrl-C frees it
  redlatch hold maintenance

  # While another program runs
  redlatch hold --for-pid 4711 backup`
