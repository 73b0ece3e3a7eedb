package compat

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

func TestScriptsMatchRecordedVectors(t *testing.T) {
	t.Parallel()
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		srv := redistest.Start(t)
		t.Logf("on %s %s", srv.Name(), srv.Version())
		requireCorpus(t, dialer(srv))
	})
	t.Run("valkey", func(t *testing.T) {
		testlevel.All(t, "the same on Valkey")
		t.Parallel()
		requireCorpus(t, dialer(redistest.StartValkey(t)))
	})
	t.Run("miniredis", func(t *testing.T) {
		testlevel.All(t, "the same on the in-memory server")
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			srv := redistest.Mini(t, embedded.WithInProcess())
			requireCorpus(t, func() (redis.Conn, error) { return srv.Server.Dial(t.Context()) })
		})
	})
}

// corpora contains the corpus of each kind. Tests must not change them.
var corpora sync.Map

func sharedCorpus(t *testing.T, kind *oracle.Kind) *oracle.Corpus {
	t.Helper()
	load, _ := corpora.LoadOrStore(kind, sync.OnceValue(func() *oracle.Corpus { return loadCorpus(t, kind) }))
	return load.(func() *oracle.Corpus)()
}

// requireCorpus replays the recorded vectors in each of our ways or, with make test, each vector in one of them. Our
// scripts must differ exactly as recorded, and only for documented reasons.
func requireCorpus(t *testing.T, dial func() (redis.Conn, error)) {
	t.Helper()
	s, every := newStage(t, dial), testlevel.IsAll() || writes()
	for _, kind := range oracle.Kinds {
		corpus := sharedCorpus(t, kind)
		if writes() {
			corpus = loadCorpus(t, kind)
		}
		for w, way := range oracle.Ways {
			referees := map[string]*oracle.Referee{}
			for i, v := range corpus.Vectors() {
				if v.Step.Op.Ours == nil || !every && i%len(oracle.Ways) != w {
					continue
				}
				outcome, err := s.Replay(way.Ours, v)
				require.NoError(t, err)
				change := v.Change(way.Ours)
				if writes() {
					*change = outcome.Change()
				}
				require.Equal(t, *change, outcome.Change(), "%s %s, %s", v.Operation, v.Does, way.Name)
				for _, text := range v.Redisson {
					if referees[text] == nil {
						r, err := oracle.ParseRelease(text)
						require.NoError(t, err)
						referees[text] = oracle.NewReferee(r, way.Ours, kind)
					}
					require.NoError(t, referees[text].JudgeAs(outcome, v.Diverges), "%s %s, %s", v.Operation, v.Does, way.Name)
				}
			}
			for text, referee := range referees {
				if every { // all steps have been played
					require.Empty(t, referee.Unseen(), "listed differences from %s that did not occur, %s", text, way.Name)
				}
			}
		}
		if writes() {
			require.NoError(t, corpus.Save(corpusFolder(t)))
		}
	}
}

func TestWrongVectorFails(t *testing.T) {
	testlevel.All(t, "5 s of a processor to try the test itself")
	t.Parallel()
	s := newStage(t, dialer(redistest.Start(t)))
	text := func(value string, left int64) oracle.Entry {
		return oracle.Entry{Type: "string", Value: value, Expires: left}
	}
	score := func(of float64) oracle.Entry {
		return oracle.Entry{Type: "zset", Value: map[string]float64{"a": of}, Expires: -1}
	}
	for does, spoil := range map[string]func(v *oracle.Vector){
		"reply":        func(v *oracle.Vector) { v.Reply.Value = int64(4711) },
		"messages":     func(v *oracle.Vector) { v.Messages = append(v.Messages, "channel 0") },
		"key":          func(v *oracle.Vector) { v.After["more"] = text("", -1) },
		"time":         func(v *oracle.Vector) { v.Before["more"], v.After["more"] = text("", 20000), text("", 19999) },
		"time, longer": func(v *oracle.Vector) { v.Before["more"], v.After["more"] = text("", 20000), text("", 20001) },
		"value":        func(v *oracle.Vector) { v.Before["more"], v.After["more"] = text("a", -1), text("b", -1) },
		"score":        func(v *oracle.Vector) { v.Before["more"], v.After["more"] = score(1), score(2) },
	} {
		for _, kind := range oracle.Kinds {
			for _, v := range loadCorpus(t, kind).Vectors() {
				if v.Step.Op.Ours == nil || *v.Change(oracle.Ours{}) != nil {
					continue
				}
				spoil(&v)
				outcome, err := s.Replay(oracle.Ours{}, v)
				require.NoError(t, err)
				require.NotNil(t, outcome.Change(), "%s of %s %s", does, v.Operation, v.Does)
			}
		}
	}
}

func TestCorpusCoversOperationsOfEveryRelease(t *testing.T) {
	t.Parallel()
	require.Contains(t, contents(t, "Makefile"), "\nRELEASES ?= "+supportedReleases+"\n")
	require.Subset(t, strings.Fields(supportedReleases), strings.Fields(defaultReleases))
	for _, kind := range oracle.Kinds {
		corpus, named := sharedCorpus(t, kind), map[string]bool{}
		for _, c := range corpus.Cases {
			require.False(t, named[c.Operation+c.Does], "two cases %s %s", c.Operation, c.Does)
			named[c.Operation+c.Does] = true
		}
		for _, v := range corpus.Vectors() {
			require.Subset(t, strings.Fields(supportedReleases), v.Redisson)
		}
		for _, text := range strings.Fields(supportedReleases) {
			r, err := oracle.ParseRelease(text)
			require.NoError(t, err)
			if !kind.In(r) {
				continue
			}
			recorded := corpus.Of(r)
			for _, op := range kind.OperationsOf(r) {
				require.True(t, slices.ContainsFunc(recorded, func(v oracle.Vector) bool { return v.Step.Op == op }),
					"%s %s", text, op)
			}
		}
	}
}

func TestCorpusRoundTrip(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	files, err := os.ReadDir(corpusFolder(t))
	require.NoError(t, err)
	require.Len(t, files, len(oracle.Kinds))
	for _, kind := range oracle.Kinds {
		require.NoError(t, sharedCorpus(t, kind).Save(folder))
		text, err := os.ReadFile(filepath.Join(corpusFolder(t), kind.Name+".json"))
		require.NoError(t, err)
		again, err := os.ReadFile(filepath.Join(folder, kind.Name+".json"))
		require.NoError(t, err)
		require.Equal(t, string(text), string(again))
		// Redisson's scripts are captured at run time and must not be stored.
		require.NotContains(t, string(text), "redis.call")
	}
}

func TestProtocolListsIntendedDifferences(t *testing.T) {
	t.Parallel()
	text := contents(t, "docs/protocol.md")
	for _, kind := range oracle.Kinds {
		for _, d := range kind.Diverges {
			row := fmt.Sprintf("| %s |", d.Name)
			i := strings.Index(text, row)
			require.GreaterOrEqual(t, i, 0, "docs/protocol.md has no row %q", row)
			line, _, _ := strings.Cut(text[i:], "\n")
			require.True(t, strings.HasSuffix(line, "| "+d.Reason+" |"), "the reason in %q is not %q", line, d.Reason)
		}
	}
}
