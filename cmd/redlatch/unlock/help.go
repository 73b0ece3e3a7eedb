package unlock

const unlockHelp = `Takes the lock NAME away from whoever holds it and wakes those who wait, as
Redisson's forceUnlock does, if you say that its holder is dead: --force alone
shows who would lose the lock, and whether the lease is renewed. Read/write
locks of Redisson are left alone. Who may not read the queue of a fair lock
wakes nobody in it: it says so.

  alive      the lease is seen to be renewed, as a watchdog does every third of
             it. It takes up to a third of the lease to see that (10 seconds,
             as a rule). The lock is not taken.
  not known  nobody renews the lease. Its holder may be dead, cut off from the
             server, or at work under a lease of its own, which nobody renews:
             the server cannot tell these apart. The lock is not taken either.
  dead       nobody renews the lease, and you have looked at the process
             yourself: --dead OWNER says so. The lock is taken if OWNER still
             holds it.

--even-if-alive takes the lock in any case, at once. A holder that lives learns
of it at its next renewal, a third of its lease later; until then two may be at
work. One with a lease of its own never learns of it. Mostly it is better to
wait: the lock of a dead holder is free when its lease is over.

On a terminal it asks before it takes the lock, unless --yes is given. Each
lock that is taken costs a line on standard error, and in --audit-file a line
of JSON: who took it, when, from whom, why (--reason). A lock that changes
hands while it is looked at is left alone, but for the one round trip that the
taking needs.

Exit codes:
  0  the lock was taken away
  1  something failed
  2  it was not taken: its holder is alive or not known to be dead, or you said
     no
  3  it is free`

const unlockExamples = `  # Who would lose it, and does it live?
  redlatch unlock --force nightly-report

  # The process was looked at, and is gone
  redlatch unlock --force --dead 71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:57 \
    --reason "host was shut down, ticket 4711" nightly-report

  # Whatever it costs
  redlatch unlock --force --even-if-alive --yes \
    --audit-file /var/log/redlatch.jsonl nightly-report`
