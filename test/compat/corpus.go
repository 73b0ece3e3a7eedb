package compat

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/test/compat/oracle"
)

// corpusFolder has what live Redissons did: see `make vectors`.
func corpusFolder(t *testing.T) string {
	t.Helper()
	return filepath.Join(checkout(t), "test", "compat", "testdata")
}

// checkout is where the module begins, seen from the folder that the tests run in.
func checkout(t *testing.T) string {
	t.Helper()
	dir := "."
	for range 8 {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Join("..", dir)
	}
	require.FailNow(t, "no go.mod above the folder of the tests")
	return ""
}

func loadCorpus(t *testing.T, kind *oracle.Kind) *oracle.Corpus {
	t.Helper()
	c, err := oracle.Load(corpusFolder(t), kind)
	require.NoError(t, err)
	return c
}

func newStage(t *testing.T, dial func() (redis.Conn, error)) *oracle.Stage {
	t.Helper()
	s, err := oracle.NewStage(dial)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// recording is held while files of the corpus are read and written: releases run side by side.
var recording sync.Mutex

// testRecorded holds that the corpus is what the live release does, or makes it
// so.
func (s scripts) testRecorded(t *testing.T) {
	write := os.Getenv("REDLATCH_VECTORS") == "write"
	if !slices.Contains(strings.Fields(supportedReleases), s.release.String()) {
		require.False(t, write, "%s is not among the supported releases", s.release)
		s.note(t, "recorded", "not recorded")
		return
	}
	stage := newStage(t, dialer(s.start(t)))
	for _, kind := range oracle.KindsOf(s.release) {
		vectors, err := stage.Record(s.theirs, kind)
		require.NoError(t, err)
		if write {
			record(t, s.release, kind, vectors)
			continue
		}
		corpus := loadCorpus(t, kind)
		const hint = "run `make vectors` and look at what it changes"
		recorded := corpus.Of(s.release)
		require.Len(t, recorded, len(vectors), hint)
		for i, v := range vectors {
			require.Equal(t, v, recorded[i], "%s %s: %s", v.Operation, v.Does, hint)
		}
		s.note(t, "recorded, "+kind.Name, fmt.Sprintf("as recorded, %d vectors", len(vectors)))
	}
}

// record writes what a release was seen to do into the corpus.
func record(t *testing.T, r oracle.Release, kind *oracle.Kind, vectors []oracle.Vector) {
	t.Helper()
	recording.Lock()
	defer recording.Unlock()
	corpus := loadCorpus(t, kind)
	corpus.Replace(r, vectors)
	require.NoError(t, os.MkdirAll(corpusFolder(t), 0o755))
	require.NoError(t, corpus.Save(corpusFolder(t)))
}
