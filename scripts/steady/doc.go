// Program steady is `go test` for machines whose processors are lent to others now and
// then. Run it in the folder of a module:
//
//	go run ./scripts/steady [-flag | -flag=value]... packages...
//
// All that begins with a dash goes to `go test`. On a machine that has its processors
// to itself the outcome is that of `go test`: a test that fails, fails.
//
// On a virtual machine the host may take the processors away for half a second at a
// time, as it pleases. Tests that run against real servers, with real leases, then
// fail by what they hold: a lease that is over is lost. The system counts that time
// as stolen, in /proc/stat. So what fails is judged:
//
//  1. A test was disturbed when, from its start to its end, the host took a quarter of
//     all processors' time in any second, or a twentieth of it on the whole.
//  2. A disturbed test runs again, alone, three times in a row. All three must pass;
//     if they do not and were disturbed, too, that is repeated, after a quiet moment
//     if there is one, five times at most.
//  3. Everything else stays red: a test that was not disturbed, one that reports a data
//     race, a package that panics, hangs or does not compile, and more than twenty
//     tests at once. So does everything where the system does not count.
//
// Nothing of that is silent: the output of what failed at first is printed, each line
// behind a bar, with how much was taken meanwhile.
package main
