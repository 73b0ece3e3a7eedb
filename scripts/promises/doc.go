// Program promises keeps the table of promises, their tests and the changes that turn these red.
// Run it from the root of the checkout:
//
//	go run ./scripts/promises            fail when test/promises.md is not current
//	go run ./scripts/promises -write     write it
//
// It reads test/promises.txt, the planted bugs in test/mutants/*.txt, and all test files. Each
// test that a promise or a planted bug names must exist. A promise has a test that a planted bug
// turns red. Some have the changes instead that did once; the scenarios U1 to U45 may not.
package main
