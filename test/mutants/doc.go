// Program mutants plants bugs, one at a time, and fails when the tests that should notice
// one stay green: a check that cannot fail is a bug. Run it from the root of the checkout:
//
//	go run ./test/mutants                 all of them
//	go run ./test/mutants -run scripts/   those whose names match
//	go run ./test/mutants -changed main   those whose file or list differs from a revision
//	go run ./test/mutants -limit 8m       begin no more after this time
//	go run ./test/mutants -generate main  none of these: see below
//
// The bugs, or mutants, are in the .txt files of this folder, one file for each subject. A
// mutant is a change to one file, written as in a diff, and the tests that must fail:
//
//	mutant acquire sets no lease
//	file   internal/luasrc/acquire.lua
//	red    internal/luasrc TestScriptsDoWhatTheVectorsSay
//	-    redis.call('PEXPIRE', lock, lease)
//
// Lines that begin with a minus are removed, those with a plus added, and those with a blank
// mark the position. The removed and marked lines must occur exactly once in the file. Every
// test named must fail, each run by itself. A blank line ends a mutant, # begins a comment.
//
// Each mutant breaks a promise of the product or a decision of its design, and there is one
// for each. A bug that a reviewer would see needs no mutant.
//
// The program works on a copy, in a temporary folder, of the files that git tracks or would
// track. It
//
//  1. runs the tests of a mutant on unchanged code, each test once in all: they must pass,
//     and must have run;
//  2. applies the mutant and runs its tests. A test that fails catches the mutant, one that
//     passes lets it survive. One that crashes or hangs without a failed assertion proves
//     little, since any use of the changed code may do that, and counts as no catch;
//  3. exits with 1 unless every mutant that was begun was caught. Code that does not compile
//     is an error of the list.
//
// With -generate the program makes mutants of the lines that differ from a revision: it
// swaps operators, negates conditions, leaves statements out, drops errors. It runs all
// tests of the package, and of the packages that catch planted bugs of it, until one fails.
// It is a tool for authors: a mutant that survives shows a line that no test checks, or one
// that does not matter, so it is no error. Existing tools for Go run the tests of the mutated
// package alone, or those of the whole module; most tests of this product's core are in
// rlock and rfairlock.
package main
