package oracle

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/test/monitor"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestRecordingTwiceGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	stage, err := NewStage(dial(redistest.Start(t)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stage.Close()) })
	theirs := queueTheirs(t)
	require.NoError(t, theirs.Learn(Acquire, monitor.Call{Script: theirsFromOurs.Replace(luasrc.Acquire.Text())}))
	kind := &Kind{Name: "some", Operations: []*Operation{queueUp, Acquire}, Cases: append(acquireCases(), queueKind.Cases...)}
	folder := t.TempDir()
	var files []string
	for range 2 {
		vectors, err := stage.Record(theirs, kind)
		require.NoError(t, err)
		corpus, err := Load(folder, kind)
		require.NoError(t, err)
		corpus.Replace(theirs.Release, vectors)
		require.Len(t, corpus.Vectors(), len(vectors))
		require.NoError(t, corpus.Save(folder))
		files = append(files, bytesOf(t, folder+"/some-queue.json"), bytesOf(t, folder+"/some-acquire.json"))
	}
	require.Equal(t, files[:2], files[2:])
	loaded, err := Load(folder, kind)
	require.NoError(t, err)
	vectors, err := stage.Record(theirs, kind)
	require.NoError(t, err)
	require.ElementsMatch(t, vectors, loaded.Of(theirs.Release))
}

func bytesOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func vectorOf(does string, reply any, releases ...string) Vector {
	return Vector{
		Operation: "acquire", Does: does, Redisson: releases, Step: Step{Op: Acquire},
		Before: State{}, Reply: Reply{reply}, After: State{}, Messages: []string{},
	}
}

func TestReleasesThatDoTheSameShareAVector(t *testing.T) {
	t.Parallel()
	kind := &Kind{Name: "some", Operations: []*Operation{Acquire}, Cases: []Case{
		{Does: "first", Step: Step{Op: Acquire}}, {Does: "second", Step: Step{Op: Acquire}},
	}}
	c := &Corpus{kind: kind}
	c.Replace(parse(t, "3.9.0"), []Vector{vectorOf("second", nil, "3.9.0"), vectorOf("first", nil, "3.9.0")})
	c.Replace(parse(t, "3.17.7"), []Vector{vectorOf("first", int64(1), "3.17.7"), vectorOf("second", nil, "3.17.7")})
	require.Equal(t, []Vector{
		vectorOf("first", nil, "3.9.0"), vectorOf("first", int64(1), "3.17.7"), vectorOf("second", nil, "3.9.0", "3.17.7"),
	}, c.Vectors())
	require.Len(t, c.Of(parse(t, "3.17.7")), 2)

	c.Replace(parse(t, "3.9.0"), []Vector{vectorOf("first", int64(1), "3.9.0")})
	require.Equal(t, []Vector{vectorOf("first", int64(1), "3.9.0", "3.17.7"), vectorOf("second", nil, "3.17.7")}, c.Vectors())
}

func TestRepliesOfEveryKindAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	for _, value := range []any{
		nil, int64(0), int64(-1), int64(1 << 62), "OK", wrongType, []any{}, []any{int64(1), nil, wrongType},
	} {
		text, err := Reply{value}.MarshalJSON()
		require.NoError(t, err)
		var got Reply
		require.NoError(t, got.UnmarshalJSON(text))
		require.Equal(t, value, got.Value)
	}
}

func TestACorpusThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	kind := &Kind{Name: "some", Operations: []*Operation{Acquire}}
	for _, text := range []string{
		"", "[", `[{"reply": {"err": 1}}]`, `[{"reply": 1.5}]`, `[{"before": {"l": {"type": "stream", "value": 1}}}]`,
	} {
		folder := t.TempDir()
		require.NoError(t, os.WriteFile(folder+"/some-acquire.json", []byte(text), 0o600))
		_, err := Load(folder, kind)
		require.Error(t, err, text)
	}
}

func TestEachCaseHasANameOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds {
		type id struct {
			op   *Operation
			does string
		}
		seen := map[id]bool{}
		for _, c := range kind.Cases {
			require.False(t, seen[id{c.Step.Op, c.Does}], "%s: %s", c.Step.Op, c.Does)
			seen[id{c.Step.Op, c.Does}] = true
			require.Contains(t, kind.Operations, c.Step.Op)
		}
	}
}

// Servers before 7.0 have no PEXPIRETIME. The question that replaces it has the same answer
// on all servers.
func TestOldServersAreAskedWhenAKeyExpires(t *testing.T) {
	t.Parallel()
	s, err := newSide(dial(redistest.Start(t)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.close()) })
	require.NoError(t, s.make(State{"l": textOf(never, "a"), "m": textOf(never, "b")}))
	const when = 4102444800123
	_, err = s.conn.Do("PEXPIREAT", "l", when)
	require.NoError(t, err)
	for name, want := range map[string]int64{"l": when, "m": never} {
		got, err := s.expires(name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}
