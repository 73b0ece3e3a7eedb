// Program mutants plants bugs in the code, one at a time. It fails if the tests that should catch a bug pass. Run it
// from the root of the checkout:
//
//	go run ./test/mutants                 all mutants
//	go run ./test/mutants -run scripts/   mutants whose names match
//	go run ./test/mutants -changed main   mutants whose file or list differs from a revision
//	go run ./test/mutants -limit 8m       do not start mutants after this time
//	go run ./test/mutants -generate main  generated mutants; see below
//
// The .txt files in this folder list the mutants by subject. A mutant is a change to one file, written as a diff, with
// the tests that must fail:
//
//	mutant acquire sets no lease
//	file   internal/luasrc/acquire.lua
//	red    internal/luasrc TestScriptsMatchVectors
//	-    redis.call('PEXPIRE', lock, lease)
//
// Lines that begin with a minus are removed, lines that begin with a plus are added, and lines that begin with a blank
// mark the position. The removed and marked lines must occur exactly once in the file. Each of the tests must fail when
// it is run alone. A blank line ends a mutant, and # begins a comment.
//
// Each mutant breaks exactly one promise of the product or one design decision. A bug that a reviewer would notice does
// not need a mutant.
//
// The program works on a copy of the files that git tracks or would track:
//
//  1. It runs the tests of the mutants on unchanged code, each test once. They must not be skipped, and must pass.
//  2. It plants each mutant and runs its tests. A failing test catches the mutant. A crash or hang without a failed
//     assertion proves little and does not count.
//  3. It exits with 1 unless all mutants were caught. Code that does not compile is an error in the list.
//
// With -generate, it makes mutants of the lines that differ from a revision: it swaps operators, negates conditions,
// removes statements and drops errors. For each mutant, it runs the tests of the package, and of the packages that
// catch the bugs planted in it, until a test fails. A mutant that survives shows that a line is not tested or not
// relevant, so it is not an error. Existing tools run either the tests of the mutated package only or all tests of the
// module, whereas most tests of the core are in rlock and rfairlock.
package main
