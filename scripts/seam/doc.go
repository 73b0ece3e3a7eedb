// Program seam measures how much code must be known or changed to change a kind of lock or to
// add one. It prints what it measures, what was found at commit 8c599b2, and what is wanted.
// Run it from the root of the checkout; -v lists what was counted:
//
//	go run ./scripts/seam -v
//
// It fails when a name in names.go no longer exists. After a move or a rename, change the
// name there. The rules below stay the same, so that figures can be compared.
//
// # The library
//
// The library is the set of packages that a user compiles: each package of the module that
// programs may import, and what it imports from the module. The folders in notLibrary do not
// belong to it. Tests are never counted.
//
// # Files and functions of one uncontended Lock
//
// Program onelock is built with coverage counters. It opens a client on the embedded server,
// without TLS, timeouts of the connection or options that do anything, locks and unlocks one
// name, and waits until background work is done. Then it sets all counters to zero, locks
// another name, waits again, and writes the counters. A function counts when one of its
// blocks ran; a function literal is part of the function around it. Goroutines that the
// call wakes count: the connection's writer and reader, the watchdog.
//
// # The context from Lock
//
// The walk begins at lockRoot. It reads a function from top to bottom. At each call with an
// argument of type context.Context it enters the called function, if the library declares it
// and the walk has not entered it before, and comes back to the caller afterwards. A method of
// an interface leads into all types of the library that implement it, in the order of
// packages (imports first) and names. Function literals are read where they are written;
// calls of function values are not followed. A stop is a stretch of the walk in one file. A
// return is a stop in a file that the walk has left before. So stops less returns is
// the number of files.
//
// # Types and fields of the wait loop
//
// The wait loop is loopRoot and all methods of loopTypes that it refers to, directly or
// through each other. Every named type of the library counts that an expression in these
// methods has or points to, and so does a type that declares a field which they select, also
// through embedding. Every field counts that they select or set.
//
// # Fields, methods, calls
//
// The fields of loopState count as declared; in brackets, a field that is a struct of
// the same package counts as its own fields. A method of the engine counts whether it is
// exported or not. A call of Queues counts once for each place in the source.
//
// # The fair lock
//
// The table fairFiles lists its files, scripts included; a pattern that matches no file counts
// nothing. The first row counts all lines outside the public package. The second row leaves
// out packages in which every file belongs to the fair lock; it says in brackets how
// many of its lines are scripts.
//
// # The arguments of a release
//
// A file counts when it
//
//   - is one of releaseScripts or declares one with NewScript;
//   - uses the script's variable other than for its text;
//   - declares an interface whose method Release takes, beside the call, an argument that is
//     not a pointer, and so spells out an argument of the script;
//   - is a page of docs with a section about releases;
//   - lists mutants of such a script. All such lists together count as one file.
//
// All modules of the checkout are searched. Generated files, tests and testdata are not.
//
// # Files that name a kind
//
// The figure at 8c599b2 was an estimate for one new kind. This row counts what makes such
// changes necessary: files of the library that use a script's variable, decode the reply of a
// script that acquires or transfers, call Queues, import the fair lock or write "fair".
// Files that declare a kind, those in fairFiles and the scripts' own package do not count.
package main
