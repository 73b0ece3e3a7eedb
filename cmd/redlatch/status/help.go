package status

const statusHelp = `Shows the holders of the lock NAME, how often each has
entered it, what its lease has left, and the queue of a fair lock. An owner is
the UUID of a client, a colon, and a number that is a thread of a Java process
or an acquisition of a Go process. After it comes the client's label, if the
client of Redlatch has one. A hash that does not look like a lock is not
shown: the exit code is 1, and --json says why.

Of a read/write lock it shows the mode, the readers and the writer;
the owner of a write lock ends in ":write". Each reader has a lease of its own:
one whose lease is over does not block the lock any more when the other readers
have left.

Whether a lease is renewed shows only when it is set anew, with the defaults
every ten seconds: before that it is "fixed or renewed". --for is how long to
look for it, at most.

A place in the queue has a deadline: from then on, once it is the first, the
next request for the lock removes it. It is shown by this machine's clock.
"subscribed" is whether the waiter's channel has a subscriber. A live waiter's
has one, except for a moment after it was queued and while it reconnects.
Subscribers are counted on the master and its replicas; where that is not
possible on all of them it is "unknown". Redlatch's clients have UUIDs of
version 7, which contain the time of their start, Redisson's of version 4.

Of a long queue the first 20 are shown, or --waiters of them, and of the rest
how many are subscribed. The holder of the lock and the first 64 places are
shown as they were at one moment. The places behind are read after that in
parts, with commands that are short for the server: owners that stay queued are
counted once; those that come or go meanwhile may be missing. The numbers add
up to the number of waiters. At most 10,000 places are read; the others are
"unknown". --from shows any other part.

A lock that is free although its queue is not empty is watched for a second, or
for --for, since it may be on its way from one owner to the next. If it is
still free then, a note explains what is known of the first in the queue.

A name that holds a number is no lock, but may be a semaphore or a count-down
latch: it shows the number, how many connections wait for it as for either, and
which permits are taken, those first that end first. An id is what a program
releases the permit with. list, watch and unlock know locks only: on the server
each number looks like a semaphore.

A plain and a fair lock of one name are one lock. Where connections of the
master listen as for a plain one while others are queued, "mixed" reports it.

Exit codes:
  0  the lock was shown, held or free
  1  something failed, or NAME is no lock
  2  the command line or the address is wrong
  3  with --exit-code: it is free`

const statusExamples = `  redlatch status nightly-report
  redlatch status --for 15s nightly-report   # is its lease renewed?
  redlatch status --for 40s billing-run      # is the first in the queue dead?
  redlatch status --json nightly-report | jq .held
  redlatch status --exit-code nightly-report >/dev/null && echo held
  redlatch status --from 10001 --waiters 500 billing-run
  redlatch status --json --waiters 0 billing-run |
    jq '.queue[] | select(.subscribed == "no")'`
