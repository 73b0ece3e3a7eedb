package ui

const uiHelp = `Serves a page that shows the locks whose names match PATTERN, or all, and
prints its address: which clients hold them and since when, which wait, and in
one sentence why a lock does not change hands. It follows changes as they
happen and changes nothing itself. Without JavaScript it loads itself again.

Only this machine can reach it, unless --addr says otherwise. Then it needs
--auth, a file with one line user:password. It speaks no TLS: put a proxy in
front, and name the host that browsers use with --host. Requests for another
host, and those that pages of other sites make, are refused.

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
  redlatch ui --addr :8374 --auth ui.auth --host locks.example.com`
