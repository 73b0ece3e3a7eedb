package watch

const watchHelp = `Tells what happens to the lock NAME, or to the locks whose names match PATTERN,
one line for each event, until it is interrupted. A pattern is as in redlatch
list.

  held      somebody had it when the watching began
  free      nobody had it then
  taken     a free lock was taken
  passed    it went from one to another
  released  it was given up
  expired   its lease was over
  gone      it is free, and no message said so: it was deleted, or it is a fair
            lock that was given up and nobody waits for
  entered, left   its holder entered it once more, or left it once
  queued, quit    somebody is queued for a fair lock, or is not any more
  woken           a message calls a waiter of a fair lock; it may not come

It listens to the locks' channels and looks at a lock after each message, and
once a second besides, since nothing is published when a lock is taken. Of
locks that change hands faster than that not each hand-over is told; --json has
the number of messages since the last look. New locks that match a pattern are
found by a message, or by a search of the keys every ten seconds. At most 1,000
are watched. Of a queue the first 256 are followed: of one that is longer it is
not told who comes. Of a read/write lock it follows the first that holds it.

In a cluster the channels of the locks that are watched are listened to, since
no pattern covers messages of shards: there new locks that match a pattern are
found by the search alone.

Exit codes:
  0      the time of --for is over
  1      something failed
  128+n  signal n ended it: 130 SIGINT (Ctrl-C), 143 SIGTERM`

const watchExamples = `  redlatch watch nightly-report
  redlatch watch 'orders:*'
  redlatch watch --json --for 1m billing-run |
    jq -c 'select(.event == "passed")'`
