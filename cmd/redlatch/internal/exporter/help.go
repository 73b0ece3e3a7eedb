package exporter

const exporterHelp = `Serves figures of the locks on a server to Prometheus: those of Redisson and of
Redlatch, whatever the applications measure themselves. One process is enough
for a server, a cluster, or a master that Sentinels watch. The URL of /metrics
is printed first. /healthz is 503 without figures, or when they are stale.

Names of locks never become labels. --match sorts locks into groups: a lock is
of the first group whose pattern matches its name, else of "other"; without
--match all are of "all". With PATTERN only locks whose names match are looked
at. Patterns are those of Redis, as in redlatch list.

The server is looked at in intervals, however many scrapes there are, as
redlatch list does: all its keys are scanned, with short commands, and the
pauses are at least four times as long as the looks.

What the server does not know:
  - When a hold began. The age of the oldest hold counts from when the exporter
    first saw it, so it is at least as old.
  - How many threads wait for a plain lock. Connections are counted instead:
    one for each process.
  - What semaphores are for. They have no mark, and are not counted.

A waiter is dead when it had no subscriber at two looks. The first 200 places
of each queue are checked, 20,000 in all. docs/observability.md has all
metrics, and docs/operations.md the rights of the user that looks.

Exit codes:
  1      it cannot listen
  2      the command line or the address is wrong
  128+n  signal n ended it: 130 SIGINT (Ctrl-C), 143 SIGTERM`

const exporterExamples = `  redlatch exporter
  redlatch exporter --match 'orders=orders:*' --match 'billing=bill*'
  redlatch exporter --listen :9797 --every 1m     # to all interfaces
  redlatch exporter 'app:*'                       # only locks of app:
  curl -s localhost:9797/metrics`
