package main

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const source = `package some_test

func TestDirect(t *testing.T) { synctest.Test(t, func(t *testing.T) { redistest.Mini(t) }) }

func TestThroughOthers(t *testing.T) { each(t, func() {}) }

func TestHandedOn(t *testing.T) { t.Run("all", bubble) }

func TestWithARealServer(t *testing.T) { bubble(t); server(t) }

func TestOnRealTime(t *testing.T) { server(t) }

func TestMain(m *testing.M) {}

func each(t *testing.T, f func()) { bubble(t); each(t, f) }

func bubble(t *testing.T) { synctest.Test(t, nil) }

func server(t *testing.T) { redistest.Shared(t) }
`

func TestTestsOnFakeTimeAreFoundInTheSource(t *testing.T) {
	names, others, err := fakeTests(fstest.MapFS{"some_test.go": {Data: []byte(source)}})
	require.NoError(t, err)
	assert.Equal(t, []string{"TestDirect", "TestHandedOn", "TestThroughOthers"}, names)
	assert.True(t, others)
}

func TestTheFailedTestsAreNamed(t *testing.T) {
	assert.Equal(t, "TestA TestB", failed("--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/b (0.1s)\nok\n--- FAIL: TestB (0.1s)\n"))
}

func TestEachKindOfRoundChoosesItsTests(t *testing.T) {
	both := &suite{fake: []string{"TestA", "TestB"}, others: true}
	assert.Equal(t, []string{"-test.run=^(TestA|TestB)$"}, both.choose("fake time", ""))
	assert.Equal(t, []string{"-test.run=^(TestB)$"}, both.choose("fake time", "B"))
	assert.Nil(t, both.choose("fake time", "C"))
	assert.Equal(t, []string{"-test.run=C", "-test.skip=^(TestA|TestB)$"}, both.choose("real time", "C"))
	assert.Nil(t, (&suite{fake: []string{"TestA"}}).choose("real time", ""))
	assert.Equal(t, []string{"-test.run="}, (&suite{others: true}).choose("real time", ""))
	assert.Nil(t, (&suite{others: true}).choose("fake time", ""))
}

func TestTheLongestPackagesBeginARound(t *testing.T) {
	c := campaign{
		suites: []*suite{{pkg: "a", others: true}, {pkg: "b", others: true}, {pkg: "c", fake: []string{"TestC"}}, {pkg: "d", others: true}},
		took:   map[string]time.Duration{"real time b": time.Second, "real time d": time.Minute, "fake time a": time.Hour},
	}
	var order []string
	for _, w := range c.longestFirst("real time", 2) {
		order = append(order, w.pkg)
	}
	assert.Equal(t, []string{"d", "b", "a"}, order)
}
