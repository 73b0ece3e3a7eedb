package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheFailedTestsAreNamed(t *testing.T) {
	assert.Equal(t, "TestA TestB", failed("--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/b (0.1s)\nok\n--- FAIL: TestB (0.1s)\n"))
}
