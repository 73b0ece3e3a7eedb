package program

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestOnlyAWaitForAProcessorExplainsASlowCommand(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	late := []slowCommand{{12 * ms, []string{"SCAN", "0"}}, {15 * ms, []string{"HGETALL", "big"}}}
	require.Nil(t, unexplained(late, 10*ms, 7*ms))
	require.Equal(t, []string{"[SCAN 0] 12ms", "[HGETALL big] 15ms"}, unexplained(late, 10*ms, 6*ms))
	require.Nil(t, unexplained(nil, 10*ms, 0))
}

func TestACommandThatIsSlowByItselfIsSeen(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	slow := WatchSlow(t, s, 5*time.Millisecond)
	s.Do(t, "PING")
	require.Empty(t, slow())
	s.Do(t, "EVAL", "for i = 1, 4e7 do end", 0)
	require.Len(t, slow(), 1)
}
