package stolen

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestStatIsRead(t *testing.T) {
	t.Parallel()
	c, ok := Parse("cpu  100 1 50 800 10 0 9 30 7 0\ncpu0 1 2 3\n")
	assert.True(t, ok)
	assert.Equal(t, Count{Stolen: 30, Total: 1000}, c)
	for _, text := range []string{"", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8 9", "cpu 1 2 3 4 5 6 7 x"} {
		_, ok := Parse(text)
		assert.False(t, ok, text)
	}
}

func TestShareIsOfTheTimeBetween(t *testing.T) {
	t.Parallel()
	early, late := Count{Stolen: 10, Total: 1000}, Count{Stolen: 60, Total: 1200}
	assert.InDelta(t, 0.25, late.Since(early), 1e-9)
	assert.Zero(t, early.Since(early))
	assert.Zero(t, early.Since(late))
	assert.Zero(t, Count{Stolen: 9, Total: 1100}.Since(early), "some systems count back")
}

func TestSystemIsAsked(t *testing.T) {
	t.Parallel()
	c, ok := Read()
	assert.Equal(t, runtime.GOOS == "linux", ok)
	assert.Equal(t, ok, c.Total > 0)
}
