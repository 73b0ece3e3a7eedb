package acquire

// Nap is exported for tests.
var Nap = nap
