package watch

const watchHelp = `Prints what happens to the lock NAME, or to the locks whose names match
PATTERN, one line for each event, until it is interrupted. A pattern is as in
redlatch list.

  held      it was held when watching began
  free      it was free then
  taken     a free lock was taken
  passed    it went from one owner to another
  released  it was released
  expired   its lease was over
  gone      it is free, and there was no message: it was deleted, or it is a
            fair lock that was released with an empty queue
  entered, left   its holder entered it once more, or left it once; a holder of
                  a read/write lock came beside others, or left others there
  queued, quit    an owner is queued for a fair lock, or is not any more
  woken           a message wakes a waiter of a fair lock; it may not come

It listens to the locks' channels and looks at a lock after each message, and
once a second besides, since nothing is published when a lock is taken. Of
locks that change owners faster than that not each change is shown; --json has
the number of messages since the last look. New locks that match a pattern are
found by a message, or by a search of the keys every ten seconds. At most 1,000
are watched. Of a queue the first 256 are followed: arrivals behind them are
not shown. Of a read/write lock all holders are followed; the number of one
that writes ends in w. Its waiters are not known: it has no queue.

In a cluster the channels of the locks that are watched are listened to, since
no pattern covers messages of shards: there new locks that match a pattern are
found by the search alone.

NAME may also be a semaphore or a count-down latch, which are numbers on the
server. Then the events are

  number    it was there when watching began, or is there now
  taken, released, expired   a permit with an id was taken, given back, or its
            lease was over
  changed   the number is another one, and no permit explains it: a plain
            semaphore, a latch that counts down, or permits that were set anew
  gone      the number is gone: a latch is open, a semaphore deleted

Of more than 1,000 permits that are taken only the numbers are told.

Exit codes:
  0      the time of --for is over
  1      something failed
  2      the command line or the address is wrong
  128+n  signal n ended it: 130 SIGINT (Ctrl-C), 143 SIGTERM`

const watchExamples = `  redlatch watch nightly-report
  redlatch watch 'orders:*'
  redlatch watch --json --for 1m billing-run |
    jq -c 'select(.event == "passed")'`
