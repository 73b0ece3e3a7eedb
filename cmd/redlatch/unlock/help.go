package unlock

const unlockHelp = `Takes the lock NAME away from a holder and wakes the waiters, if you state that
the holder is dead: --force alone shows the holders, and whether each of them
renews its lease. A user that may not read the queue of a fair lock wakes no
waiter in it; the output says so.

  alive      the lease is seen to be renewed, as a watchdog does every third of
             it. It takes up to a third of the lease to see that (10 seconds,
             as a rule), which standard error says. The lock is not taken.
  not known  the lease is not renewed. Its holder may be dead, cut off from the
             server, or at work under a fixed lease, which is never renewed:
             the server cannot tell these apart. The lock is not taken either.
  dead       the lease is not renewed, and you have looked at the process
             yourself: --dead OWNER states it. The lock is taken from OWNER if
             OWNER still holds it, and leaves what its own unlock leaves.

Readers of a read/write lock are judged one by one, each by its own lease,
whatever the others do, and only those named lose the lock. If no reader is
left whose lease is not over, the lock is free. Several --dead name several
readers. A live reader of Redisson before 4.4 also renews the leases of dead
ones: they look alive until it has left.

Of a semaphore with permits that have ids, OWNER is the id of a permit, as
redlatch status shows it: the permit is released as by its own holder.

--even-if-alive takes the lock immediately, from a live holder as well: with
--owner OWNER from that one, and otherwise from all holders, as Redisson's
forceUnlock does. A live holder notices at its next renewal, a third of its
lease later; until then two may be at work. One with a fixed lease never
notices. Mostly it is better to wait: the lock of a dead holder is free when
its lease is over.

On a terminal it asks before it takes the lock, unless --yes is given. Each
lock that is taken costs a line on standard error, and in --audit-file a line
of JSON: the user, the time, the holder, the reason (--reason). A holder whose
hold changes during the examination keeps it. The output says who has the lock
after that.

Exit codes:
  0  the lock was taken away
  1  something failed
  2  it was not taken: its holder is alive or not known to be dead, you
     answered no, the server is a replica, or the command line or the address
     is wrong
  3  it is free`

const unlockExamples = `  # Which holder would lose it, and is it alive?
  redlatch unlock --force nightly-report

  # The process was examined, and is gone
  redlatch unlock --force --dead 71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:57 \
    --reason "host was shut down, ticket 4711" nightly-report

  # Two of many readers, both gone; the others keep the lock
  redlatch unlock --force --dead 71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:57 \
    --dead 0193e6c0-6f00-7000-8000-0000000000aa:2 books

  # One reader, dead or not
  redlatch unlock --force --even-if-alive \
    --owner 71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:57 books

  # A permit of a semaphore, whose holder is gone
  redlatch unlock --force --dead 6f1d3c1a0b9e4c7f8a52f4e07b3d9c11 downloads

  # In any case, at once
  redlatch unlock --force --even-if-alive --yes \
    --audit-file /var/log/redlatch.jsonl nightly-report`
