// Program mutants plants bugs in the code, one at a time. It fails if the tests that should catch a bug pass. Run it
// from the root of the checkout:
//
//	go run ./test/mutants                 all mutants
//	go run ./test/mutants -run scripts/   mutants whose names match
//	go run ./test/mutants -changed main   mutants whose file or list differs from a revision
//	go run ./test/mutants -limit 8m       do not start mutants after this time
//	go run ./test/mutants -generate main  generated mutants; see below
//
// The .txt files in this folder list the mutants by subject, in the format that docs/testing.md describes. A blank line
// ends a mutant, and # begins a comment.
//
// The program works on a copy of the files that git tracks or would track. It first runs the tests on unchanged code.
// They must not be skipped, and must pass. Then it plants each mutant and runs its tests, each of them alone. A crash
// or hang without a failed assertion does not count as a failure, and neither does code that does not compile.
//
// With -generate, it makes mutants of the lines that differ from a revision: it swaps operators, negates conditions,
// removes statements and drops errors. For each mutant, it runs the tests of the package, and of the packages that
// catch the bugs planted in it, until a test fails. A mutant that survives shows that a line is not tested or not
// relevant, so it is not an error.
package main
