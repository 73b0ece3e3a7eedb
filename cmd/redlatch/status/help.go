package status

const statusHelp = `Shows the holders of the lock NAME, how often each has
entered it, what its lease has left, and the queue of a fair lock. An owner is
the UUID of a client, a colon, and a number that is a thread of a Java process
or an acquisition of a Go process. Beside it stands the client's label, where a
client of Redlatch was given one. A hash that does not look like a lock is not
shown: the exit code is 1, and --json says why.

Of a read/write lock of Redisson it tells what it is held for, who reads and
who writes; the owner of a write lock ends in ":write". Each who reads has a
lease of its own: one whose lease is over keeps nobody out any more when the
others have gone.

Whether a lease is renewed shows only when it is set anew, with the defaults
every ten seconds: before that it is "fixed or unknown". --for says how long to
look for it, at most.

A place in the queue has a deadline: from then on, once it is the first,
whoever looks next removes it. It is told by this machine's clock. "subscribed"
says whether anybody listens for the wake-up that is meant for it, as those do
who live, but for a moment after they have queued and while they reconnect.
They are counted on the master and its replicas; where that cannot be done on
all of them it is "unknown". Redlatch's clients have UUIDs of version 7, which
tell when they were started, Redisson's of version 4.

Of a long queue the first 20 are shown, or as many as --waiters says, and of
the rest how many are subscribed. Who holds the lock, and the first 64 places,
are told as they were at one moment. Those behind are read after that in parts,
with commands that are short for the server: whoever is queued all the while is
counted once, who comes or goes meanwhile may be or not. The numbers add up to
the number that wait.

A lock that is free although somebody is queued is looked at for a second, or
as long as --for says, since it may be on its way from one to the next. If it
is still free then, a note says what is known of the first in the queue.

A plain and a fair lock of one name are one lock. Where connections of the
master listen as for a plain one while others are queued, "mixed" tells of it.`

const statusExamples = `  redlatch status nightly-report
  redlatch status --for 15s nightly-report   # is its lease renewed?
  redlatch status --for 40s billing-run      # is the first in the queue dead?
  redlatch status --json nightly-report | jq .held
  redlatch status --json --waiters 0 billing-run |
    jq '.queue[] | select(.subscribed == "no")'`
