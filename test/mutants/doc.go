// Program mutants plants bugs, one at a time, and fails if the tests that should catch one pass. Run it from
// the root of the checkout:
//
//	go run ./test/mutants                 all mutants
//	go run ./test/mutants -run scripts/   those with matching names
//	go run ./test/mutants -changed main   those whose file or list differs from a revision
//	go run ./test/mutants -limit 8m       start none after this time
//	go run ./test/mutants -generate main  generated mutants; see below
//
// The .txt files of this folder list the mutants by subject. A mutant is a change to one file, written as a
// diff, and the tests that must fail:
//
//	mutant acquire sets no lease
//	file   internal/luasrc/acquire.lua
//	red    internal/luasrc TestScriptsMatchVectors
//	-    redis.call('PEXPIRE', lock, lease)
//
// Lines that begin with a minus are removed, lines with a plus added, and lines with a blank mark the
// position. Removed and marked lines must occur exactly once in the file. Every named test must fail when run
// alone. A blank line ends a mutant, # begins a comment.
//
// Each mutant breaks exactly one promise of the product or one design decision. A bug that a reviewer would notice does
// not need a mutant.
//
// The program works on a copy of the files that git tracks or would track:
//
//  1. It runs a mutant's tests on unchanged code, each test once overall: they must run and pass.
//  2. It plants the mutant and runs its tests. A failing test catches the mutant. A crash or hang without a
//     failed assertion proves little and does not count.
//  3. It exits with 1 unless every mutant was caught. Code that does not compile is an error of the list.
//
// With -generate it makes mutants of the lines that differ from a revision: it swaps operators, negates
// conditions, removes statements, drops errors. It runs the tests of the package, and of the packages that
// catch its planted bugs, until one fails. A surviving mutant shows an untested or irrelevant line, so it is
// not an error. Existing tools run only the mutated package's tests or all of the module's; most tests of the
// core are in rlock and rfairlock.
package main
