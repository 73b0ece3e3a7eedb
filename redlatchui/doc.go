// Package redlatchui is a live page for the locks on a Redis or Valkey server, those of
// Redisson and of Redlatch: which clients hold them and since when, which wait, in a circle even,
// why a lock does not change hands, and what on the server does not fit locks. The command
// redlatch ui serves it; a program can serve it, too:
//
//	page, err := redlatchui.New(client, redlatchui.Options{Hosts: []string{"locks.example.com"}})
//	…
//	mux.Handle("/locks/", requireLogin(http.StripPrefix("/locks", page)))
//
// The page has no login of its own: a program that serves it beyond this machine puts its own in
// front. It changes nothing on the server unless Options.Access grants a viewer an action: to take
// a lock away from holders that are dead, or a dead waiter out of a queue. docs/ui.md describes
// all of it.
//
// # What it refuses
//
// Requests for a host that is not in the list of Options (DNS rebinding), requests that another
// site's page makes, other than a link to it, all methods but GET and HEAD, and POST but for
// actions. Names, owners
// and labels are bytes that others wrote: they are escaped, and control characters and those
// that change the direction of writing are shown as escapes. No answer may be stored, framed or
// read by another origin, and no script runs but its own.
//
// # What it costs
//
// Nothing while no page is open. All pages together cost what one does: SCAN of 250 keys and
// short commands, as redlatch list sends them, for each of 64 locks whose pages are open some short
// commands a second, and an examination every 15 seconds while the page of the server is open.
// The page of a lock that is held and has a queue scans, too: the lock may be in a circle of waits.
package redlatchui
