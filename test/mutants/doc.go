// Program mutants plants bugs, one at a time, and fails when the tests that should notice
// one stay green: a check that cannot fail is a bug. Run it from the root of the checkout:
//
//	go run ./test/mutants                 all of them
//	go run ./test/mutants -run scripts/   those whose names match
//	go run ./test/mutants -changed main   those whose file or list differs from a revision
//	go run ./test/mutants -limit 8m       the rest is left out after this time
//	go run ./test/mutants -generate main  none of these: see below
//
// The bugs, or mutants, are in the .txt files of this folder, one file for each
// subject. A mutant is a change to one file, written as in a diff, and the tests that it must
// turn red:
//
//	mutant acquire sets no lease
//	file   internal/luasrc/acquire.lua
//	red    internal/luasrc TestScriptsDoWhatTheVectorsSay
//	-    redis.call('PEXPIRE', lock, lease)
//
// Lines that begin with a minus go, those with a plus come, and those with a blank stay:
// they mark the position. What goes and stays must occur exactly once in the file; a mutant
// that no longer applies is an error, because the code that it checks has changed. Every
// test named must go red, each run by itself. A blank line ends a mutant, # begins a
// comment.
//
// Each states a promise of the product or a decision of its design. A bug that a reviewer
// would see needs no mutant.
//
// The program changes nothing in the checkout. It works on copies in a temporary folder,
// one for each worker, of the files that git tracks or would track. It
//
//  1. runs the tests of a mutant on unchanged code, each test once in all: they must be
//     green, and must have run;
//  2. applies the mutant. Code that does not compile is an error of the list and catches
//     nothing; a failed test has caught the mutant; a green one lets it survive; one that
//     crashes proves nothing, since any use of the changed code may crash;
//  3. prints a table, and exits with 1 unless every mutant that was begun was caught.
//
// With -generate the program makes mutants by itself, of the lines that differ from a
// revision: it swaps operators, negates conditions, leaves statements out, drops errors. It
// runs all tests of the package, and of the packages that catch planted bugs of it, until
// one fails. It is a tool for authors: a mutant that survives shows a line that no test
// holds, or one that does not matter, so it is no error. Existing tools for Go try the tests
// of the mutated package alone, or those of the whole module; most of what holds this
// product's core stands in rlock and rfairlock.
//
// A test that is still running when it should long have failed counts as red: a hang is a
// failure, too. The table marks it. So does one in which all goroutines wait for each other.
package main
