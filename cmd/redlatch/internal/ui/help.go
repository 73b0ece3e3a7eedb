package ui

const uiHelp = `Serves a page that shows the locks whose names match PATTERN, or all, and
prints its address: which clients hold them and since when, which wait, and in
one sentence why a lock does not change hands. It follows changes as they
happen. Without JavaScript it loads itself again. It changes nothing, unless
--allow gives it actions: unlock takes a lock away from holders that are dead,
as redlatch unlock --force --dead does, and evict takes a dead waiter out of a
queue. Each wants a reason and costs a line on standard error before it is
done, and one after. A holder that renews its lease keeps the lock.

Only this machine can reach it, unless --addr says otherwise. Then it needs
--auth, a file with a line user:password for each user, as --allow does
everywhere. It speaks no TLS: put a proxy in front, and name the host that
browsers use with --host. Requests for another host, and those that pages of
other sites make, are refused. An address may give ten wrong passwords, then
one each 30 seconds, and each is a line on standard error.

The server gets the commands of one viewer however many there are, and none
without viewers. A --user that may only read makes sure that nothing can be
changed.

Exit codes:
  1      it could not be started
  2      the command line or the address is wrong
  128+n  signal n ended it: 130 SIGINT (Ctrl-C), 143 SIGTERM`

const uiExamples = `  redlatch ui
  redlatch ui 'orders:*'
  redlatch ui --addr 127.0.0.1:0         # a free port; the address is printed
  redlatch ui --allow unlock,evict --auth ui.auth
  redlatch ui --addr :8374 --auth ui.auth --host locks.example.com`
