// Package redlatchui serves a live web page about the locks of Redisson and Redlatch on a Redis or Valkey server. It
// shows holders, waiters, deadlocks, and why a lock is not changing hands. A program can serve the
// page, as redlatch ui does:
//
//	page, err := redlatchui.New(client, redlatchui.Options{Hosts: []string{"locks.example.com"}})
//	…
//	mux.Handle("/locks/", requireLogin(http.StripPrefix("/locks", page)))
//
// The page does not have a login. Programs that serve it to other machines must add one. The page does not change
// anything on the server unless [Options].Access grants a viewer an action. It rejects requests for hosts that are
// not in Options, and requests from pages on other sites, except links.
//
// While no page is open, no commands are sent to the server. See docs/ui.md.
package redlatchui
