package testlevel

import "testing"

// Drawn is a test for rapid.Check, which then draws as many sequences as it says. Of a bare
// *testing.T it would ask when the package's time is over, and end early, and pass, when that is
// near: on a slow machine, with hardly anything tried.
type Drawn struct{ *testing.T }
