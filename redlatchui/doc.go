// Package redlatchui serves a live web page about the locks of Redisson and Redlatch on a Redis or Valkey
// server: who holds them and since when, who waits, deadlocks, why a lock does not
// change hands, and server settings that do not fit locks. The command redlatch ui serves it, and so
// can a program:
//
//	page, err := redlatchui.New(client, redlatchui.Options{Hosts: []string{"locks.example.com"}})
//	…
//	mux.Handle("/locks/", requireLogin(http.StripPrefix("/locks", page)))
//
// The page lacks a login: a program that serves it beyond this machine must add it. It changes nothing
// on the server unless Options.Access grants a viewer an action. docs/ui.md describes the page.
//
// It rejects requests for hosts that are not in Options (DNS rebinding), requests by pages of other
// sites except links, and methods other than GET, HEAD and, for actions, POST. Names, owners and
// labels are untrusted: they are escaped, as are control characters and characters that change the
// writing direction. Other origins can neither frame nor read the page, and it runs only its own script.
//
// While no page is open, the server gets no commands. All open pages together cost as much as one: the
// commands of redlatch list, some short commands a second for each of up to 64 locks, and an examination
// every 15 seconds for the page of the server. The page of a held lock with a queue also scans, to find
// deadlocks.
package redlatchui
