// Program figures lists the tables of figures in the documents, with the commit that each was
// measured on, and what has changed since. Run it from the root of the checkout:
//
//	go run ./scripts/figures             list them, the outdated ones last
//	go run ./scripts/figures -strict     fail when one is outdated: for releases
//	go run ./scripts/figures -check      fail when a table of figures says nothing of its origin
//	go run ./scripts/figures -take NAME  run the command of a table, and write what it prints
//
// A table of figures stands between a mark that names it and a line about its origin:
//
//	<!-- figures: model -->
//	| fleet | acquisitions |
//	|---|---|
//	| with Redlatch | 282241 |
//
//	*`make model`, commit `6c02d18`, 2026-11-23, two processors.*
//
// A file that a command writes as a whole has the line alone. A table is outdated when code
// that its command measures has changed since the commit, or when the commit is not in the
// repository.
package main
