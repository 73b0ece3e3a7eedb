package main

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
  woken           a message calls a waiter of a fair lock

It listens to the locks' channels and looks at a lock after each message, and
once a second besides, since nothing is published when a lock is taken. Of
locks that change hands faster than that not each hand-over is told; --json has
the number of messages since the last look. New locks that match a pattern are
found by a message, or by a search of the keys every ten seconds. At most 1,000
are watched.`

const watchExamples = `  redlatch watch nightly-report
  redlatch watch 'orders:*'
  redlatch watch --json --for 1m billing-run |
    jq -c 'select(.event == "passed")'`
