package luasrc

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

func TestFairScriptsMatchVectors(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, target redistest.Target) {
		t.Helper()
		tellAllFair(t, target, fairStories)
		t.Run("long", func(t *testing.T) {
			testlevel.All(t, "queues of thousands")
			testlevel.NoRace(t, testlevel.OneGoroutine)
			tellAllFair(t, target, fairLong)
		})
	})
}

func tellAllFair(t *testing.T, target redistest.Target, stories []fairStory) {
	t.Helper()
	s := newStage(t, target)
	for _, story := range stories {
		require.NoError(t, s.tellFair(story))
	}
}
