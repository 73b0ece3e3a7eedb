package compat

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestWaitingMemberExitsWithParent(t *testing.T) {
	t.Parallel()
	s, name := redistest.Shared(t), redistest.Key(t)
	s.Do(t, "HSET", name, program.SomeOwner, 1)
	m := startGo(t, s.URL(), name, memberKind+"=plain")
	m.lock(t)
	require.Eventually(t, func() bool { return len(s.Channels(t)) > 0 }, atMost, 5*time.Millisecond, "it does not wait")
	require.NoError(t, m.in.Close()) // as if the parent had died
	select {
	case line, more := <-m.output:
		require.False(t, more, line.text)
	case <-time.After(atMost):
		require.Fail(t, "it is still there")
	}
}
