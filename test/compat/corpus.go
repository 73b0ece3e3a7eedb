package compat

import (
	"fmt"
	"os"
	"path/filepath"
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
	c := must(oracle.Load(corpusFolder(t), kind))(t)
	return c
}

func newStage(t *testing.T, dial func() (redis.Conn, error)) *oracle.Stage {
	t.Helper()
	s := must(oracle.NewStage(dial))(t)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// writes reports whether vectors are to be recorded: see `make vectors`.
func writes() bool { return os.Getenv("REDLATCH_VECTORS") == "write" }

// recording is held while files of the corpus are read and written: releases run concurrently.
var recording sync.Mutex

// testRecorded holds that the corpus is what the live release does, or records it. A release
// that is not recorded does what the recorded one before it does.
func (s scripts) testRecorded(t *testing.T) {
	stage := newStage(t, dialer(s.start(t)))
	for _, kind := range oracle.KindsOf(s.release) {
		recording.Lock()
		corpus := loadCorpus(t, kind)
		vectors := corpus.Of(s.release)
		recording.Unlock()
		var cases []*oracle.Case
		for _, v := range vectors {
			cases = append(cases, v.Case)
		}
		results := must(stage.Record(s.theirs, cases))(t)
		if writes() {
			record(t, s.release, kind, results)
			continue
		}
		for i, v := range vectors {
			want := *v.Result
			want.Redisson, want.Own, want.Shared = results[i].Redisson, nil, nil
			require.Equal(t, want, results[i], "%s %s: run `make vectors` and look at what it changes", v.Operation, v.Does)
		}
		s.note(t, "recorded, "+kind.Name, fmt.Sprintf("as recorded, %d vectors", len(vectors)))
	}
}

// record writes what a release was seen to do into the corpus.
func record(t *testing.T, r oracle.Release, kind *oracle.Kind, results []oracle.Result) {
	t.Helper()
	recording.Lock()
	defer recording.Unlock()
	corpus := loadCorpus(t, kind)
	corpus.Replace(r, results)
	require.NoError(t, corpus.Save(corpusFolder(t)))
}
