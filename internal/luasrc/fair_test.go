package luasrc

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

func TestFairScriptsDoWhatTheVectorsSay(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, target redistest.Target) {
		t.Helper()
		tellAllFair(t, target, fairStories)
		t.Run("long", func(t *testing.T) {
			testlevel.All(t, "queues of thousands")
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

func TestFairPlayerNoticesDifferences(t *testing.T) {
	t.Parallel()
	s := newStage(t, redistest.Start(t))
	for name, spoil := range map[string]func(f *fairPlayer){
		"reply":    func(f *fairPlayer) { delete(f.Counts, a1) },
		"count":    func(f *fairPlayer) { f.Counts[a1]++ },
		"lease":    func(f *fairPlayer) { f.PTTL += 60000 },
		"message":  func(f *fairPlayer) { f.notify(a1) },
		"silence":  func(f *fairPlayer) { f.command("DEL", f.l); f.Queue = nil; f.release(a1, 0, 0) },
		"order":    func(f *fairPlayer) { slices.Reverse(f.Queue) },
		"deadline": func(f *fairPlayer) { f.Deadlines[a2]++ },
		"expiry":   func(f *fairPlayer) { f.command("PEXPIRE", codec.QueueKey(f.l), 9999) },
		"cost":     func(f *fairPlayer) { f.costs("EXISTS") },
	} {
		require.Error(t, s.tellFair(fairStory{name, func(f *fairPlayer) {
			f.try(a1, 0, 1)
			f.enqueue(in(a2, 5), in(a3, 5))
			f.try(a1, 0, 1)
			require.NoError(t, f.err)
			spoil(f)
			f.try(a4, 0, 1)
		}}), name)
	}
}
