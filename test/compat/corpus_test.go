package compat

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

// played is what ours did with a vector.
type played struct {
	vector  oracle.Vector
	outcome *oracle.Outcome
}

func replay(t *testing.T, s *oracle.Stage, ours oracle.Ours, vectors []oracle.Vector) []played {
	t.Helper()
	var all []played
	for _, v := range vectors {
		if v.Step.Op.Ours == nil {
			continue
		}
		outcome, err := s.Replay(ours, v)
		require.NoError(t, err)
		all = append(all, played{v, outcome})
	}
	return all
}

// judge returns the first difference from a release that nothing explains, or
// that is listed and did not occur.
func judge(referee *oracle.Referee, r oracle.Release, all []played) error {
	for _, p := range all {
		if !slices.Contains(p.vector.Redisson, r.String()) {
			continue
		}
		if err := referee.JudgeAs(p.outcome, p.vector.Diverges); err != nil {
			return fmt.Errorf("%s %s: %w", p.vector.Operation, p.vector.Does, err)
		}
	}
	if unseen := referee.Unseen(); len(unseen) > 0 {
		return fmt.Errorf("listed differences from %s that did not occur: %q", r, unseen)
	}
	return nil
}

func TestRecordedVectorsHoldForOurScripts(t *testing.T) {
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

// requireCorpus replays what all releases were seen to do, in each of our ways.
func requireCorpus(t *testing.T, dial func() (redis.Conn, error)) {
	t.Helper()
	s := newStage(t, dial)
	for _, kind := range oracle.Kinds {
		for _, way := range oracle.Ways {
			all := replay(t, s, way.Ours, loadCorpus(t, kind).Vectors())
			for _, r := range supported(t) {
				if !kind.In(r) {
					continue
				}
				require.NoError(t, judge(oracle.NewReferee(r, way.Ours, kind), r, all), way.Name)
			}
		}
	}
}

// Owners that travel do what the newest release does, so that each change of a
// record must show; but for those that have a difference that is meant.
func TestRecordedVectorsThatAreWrongAreNoticed(t *testing.T) {
	testlevel.All(t, "5 s of a processor to try the test itself")
	t.Parallel()
	s := newStage(t, dialer(redistest.Start(t)))
	newest := supported(t)[len(supported(t))-1]
	for does, spoil := range map[string]func(*oracle.Vector){
		"reply":    func(v *oracle.Vector) { v.Reply.Value = int64(4711) },
		"messages": func(v *oracle.Vector) { v.Messages = append(v.Messages, "channel 0") },
		"key":      func(v *oracle.Vector) { v.After = oracle.State{"more": {Type: "string", Value: "", Expires: -1}} },
		"time": func(v *oracle.Vector) {
			v.Before["more"] = oracle.Entry{Type: "string", Value: "", Expires: 20000}
			v.After["more"] = oracle.Entry{Type: "string", Value: "", Expires: 19999}
		},
		"time, longer": func(v *oracle.Vector) {
			v.Before["more"] = oracle.Entry{Type: "string", Value: "", Expires: 20000}
			v.After["more"] = oracle.Entry{Type: "string", Value: "", Expires: 20001}
		},
		"value": func(v *oracle.Vector) {
			v.Before["more"] = oracle.Entry{Type: "string", Value: "a", Expires: -1}
			v.After["more"] = oracle.Entry{Type: "string", Value: "b", Expires: -1}
		},
	} {
		for _, kind := range oracle.Kinds {
			requireSpoilt(t, s, newest, kind, does, spoil)
		}
	}
}

func requireSpoilt(t *testing.T, s *oracle.Stage, newest oracle.Release, kind *oracle.Kind, does string, spoil func(*oracle.Vector)) {
	t.Helper()
	ours := oracle.Ours{Shared: true}
	referee := oracle.NewReferee(newest, ours, kind)
	for _, v := range loadCorpus(t, kind).Of(newest) {
		if v.Step.Op.Ours == nil || slices.ContainsFunc(kind.Diverges, func(d oracle.Divergence) bool {
			return slices.Contains(v.Diverges, d.Name) && referee.Expects(d)
		}) {
			continue
		}
		spoil(&v)
		outcome, err := s.Replay(ours, v)
		require.NoError(t, err)
		require.Error(t, oracle.NewReferee(newest, ours, kind).JudgeAs(outcome, v.Diverges), "%s of %s %s", does, v.Operation, v.Does)
	}
}

func TestEverySupportedReleaseHasAVectorForEachCase(t *testing.T) {
	t.Parallel()
	require.Contains(t, contents(t, "Makefile"), "\nRELEASES ?= "+supportedReleases+"\n")
	require.Subset(t, strings.Fields(supportedReleases), strings.Fields(defaultReleases))
	for _, kind := range oracle.Kinds {
		corpus := loadCorpus(t, kind)
		for _, r := range supported(t) {
			cases, vectors := kind.CasesOf(r), corpus.Of(r)
			require.Len(t, vectors, len(cases), "recorded of %s: run `make vectors`", r)
			for _, c := range cases {
				i := slices.IndexFunc(vectors, func(v oracle.Vector) bool { return v.Step.Op == c.Step.Op && v.Does == c.Does })
				require.GreaterOrEqual(t, i, 0, "%s %s", r, c.Does)
				require.Equal(t, c.Step, vectors[i].Step, c.Does)
				require.Equal(t, c.Before, vectors[i].Before, c.Does)
				require.ElementsMatch(t, c.Meant, vectors[i].Diverges, c.Does)
			}
		}
		for _, v := range corpus.Vectors() {
			for _, release := range v.Redisson {
				require.Contains(t, strings.Fields(supportedReleases), release)
			}
		}
	}
}

func TestCorpusIsWrittenAsItIsRead(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	known := map[string]bool{}
	for _, kind := range oracle.Kinds {
		require.NoError(t, loadCorpus(t, kind).Save(folder))
		for _, op := range kind.Operations {
			known[kind.Name+"-"+op.Name+".json"] = true
		}
	}
	files, err := os.ReadDir(corpusFolder(t))
	require.NoError(t, err)
	require.Len(t, files, len(known))
	for _, file := range files {
		require.True(t, known[file.Name()], "%s is no operation's", file.Name())
		text, err := os.ReadFile(filepath.Join(corpusFolder(t), file.Name()))
		require.NoError(t, err)
		again, err := os.ReadFile(filepath.Join(folder, file.Name()))
		require.NoError(t, err)
		require.Equal(t, string(text), string(again))
		// Redisson's scripts are captured when they are needed, and kept nowhere.
		require.NotContains(t, string(text), "redis.call")
	}
}

func TestEveryMeantDifferenceIsInTheProtocolWithItsReason(t *testing.T) {
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
