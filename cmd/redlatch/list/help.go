package list

const listHelp = `Lists the locks whose names match PATTERN, all without one: those of Redlatch
and of Redisson, held or free with a queue, and the semaphores of which permits
with ids are taken. It works while the applications are down. PATTERN is one of
Redis's: * for anything, ? for one character, [ab] for one of these. Quote it,
or the shell takes it for files.

  KIND    plain, or fair if its queue is not empty (a fair lock with an empty
          queue looks like a plain one), or r/w for a read/write lock
  HOLDER  the kind of client, the end of its UUID, and the number of its thread
          or acquisition; redlatch status shows it in full
  COUNT   how often the holder has entered
  LEASE   how long the server keeps the lock if it is not renewed
  QUEUE   how many are queued
  mixed   some wait for this name as for another kind of lock than is held

Of a semaphore (sem) HOLDER says how many permits are taken and available,
those whose leases are over among the taken; LEASE is how long its number
lives, and QUEUE how many connections wait. A semaphore of which no permit is
taken, a plain one (getSemaphore) and a count-down latch (latch) are numbers
on the server, as other programs have them, so they are listed only with
--kind semaphore, latch or counter (count): what permits are taken of or
waited for is a semaphore, what is waited for as for a latch is a latch, and
each other number may be either or neither.

Locks have no mark on the server, so all its keys are scanned, 250 at a
time and with short commands: the server serves other clients in between. In a
cluster one master is scanned after the other. Locks that are taken or released
meanwhile may be missing. Up to 100,000 locks are sorted by name; more come in
sorted pages of as many, unless --sort is given. --json prints them as they are
found, unless --sort, --limit or --dead-waiters is given. The last line says
how many there are, and if they came in pages.

A name that is no UTF-8 is shown in base64, too: status, watch, evict and
unlock take it with --base64. run does not: no Java program has such a name.

--stuck lists what is free although owners are queued. --dead-waiters lists
locks with waiters that had no subscriber at two looks, a second apart, as in
redlatch status; redlatch evict --all-dead takes such waiters out. It looks at
the first 10,000 places of each queue.

With --watch up to 1,000 locks are shown, or --limit, and the pauses are at
least four times as long as the looks.

Exit codes:
  0      the locks were listed, though there be none
  1      something failed; if that is one master of a cluster, the locks of
         the others are listed
  2      the command line or the address is wrong
  128+n  signal n ended it: 130 SIGINT (Ctrl-C), 143 SIGTERM`

const listExamples = `  redlatch list
  redlatch list 'orders:*'
  redlatch list --kind fair --watch
  redlatch list --sort queue --limit 10      # the longest queues
  redlatch list --kind semaphore 'pool:*'    # also with no permit taken
  redlatch list --stuck                      # free, with a queue
  redlatch list --json | jq -r 'select(.queue_length > 10) | .name'`
