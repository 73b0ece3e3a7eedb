package host

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestStatIsRead(t *testing.T) {
	t.Parallel()
	m, ok := parseMachine("cpu  100 1 50 800 10 0 9 30 7 0\ncpu0 1 2 3\n")
	assert.True(t, ok)
	assert.Equal(t, machine{stolen: 30, total: 1000}, m)
	for _, text := range []string{"", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8 9", "cpu 1 2 3 4 5 6 7 x"} {
		_, ok := parseMachine(text)
		assert.False(t, ok, text)
	}
	assert.Equal(t, runtime.GOOS == "linux", readMachine().total > 0)
}

func TestShareIsOfTheTimeBetween(t *testing.T) {
	t.Parallel()
	early, late := machine{stolen: 10, total: 1000}, machine{stolen: 60, total: 1200}
	assert.InDelta(t, 0.25, late.since(early), 1e-9)
	assert.Zero(t, early.since(early))
	assert.Zero(t, early.since(late))
	assert.Zero(t, machine{stolen: 9, total: 1100}.since(early), "some systems count back")
	work := Info{machine: late}.Since(Info{machine: early}, nil)
	assert.InDelta(t, 0.25, work.Stolen, 1e-9)
}
