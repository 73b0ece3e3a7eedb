//go:build race

package work_test

// raceDetector says that the tests run with it.
const raceDetector = true
