package acquire

// Nap is nap, for tests.
var Nap = nap
