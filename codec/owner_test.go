package codec

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/limits"
)

const clientText = "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11"

var clientID = uuid.MustParse(clientText)

func TestOwnerTextMatchesRedisson(t *testing.T) {
	t.Parallel()
	for text, owner := range map[string]Owner{
		clientText + ":57":                             NewOwner(clientID, 57),
		clientText + ":0":                              NewOwner(clientID, 0),
		clientText + ":-1":                             NewOwner(clientID, -1),
		clientText + ":9223372036854775807":            NewOwner(clientID, math.MaxInt64),
		clientText + ":-9223372036854775808":           NewOwner(clientID, math.MinInt64),
		"00000000-0000-0000-0000-000000000000:0":       {},
		"ffffffff-ffff-ffff-ffff-ffffffffffff:1":       NewOwner(uuid.Max, 1),
		"01234567-89ab-cdef-fedc-ba9876543210:1000000": NewOwner(uuid.MustParse("0123456789abcdeffedcba9876543210"), 1_000_000),
	} {
		require.Equal(t, text, owner.String())
		require.Equal(t, "x"+text, string(owner.appendTo([]byte("x"))))
		parsed, err := ParseOwner(text)
		require.NoError(t, err)
		require.Equal(t, owner, parsed)
	}
}

func TestOwnerReturnsItsParts(t *testing.T) {
	t.Parallel()
	owner := NewOwner(clientID, 57)
	require.Equal(t, clientID, owner.Client())
	require.Equal(t, int64(57), owner.N())
	require.False(t, owner.IsZero())
	require.True(t, Owner{}.IsZero())
	require.False(t, NewOwner(uuid.Nil, 1).IsZero())
	require.True(t, owner == NewOwner(clientID, 57), "comparable") //nolint:testifylint // the operator is what is tested
}

func TestParseOwnerRejectsOtherForms(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":             "",
		"no number":         clientText + ":",
		"no colon":          clientText,
		"other separator":   clientText + "-57",
		"upper case":        strings.ToUpper(clientText) + ":57",
		"one upper letter":  "71B" + clientText[3:] + ":57",
		"plus sign":         clientText + ":+57",
		"leading zero":      clientText + ":057",
		"minus zero":        clientText + ":-0",
		"underscore":        clientText + ":5_7",
		"hexadecimal":       clientText + ":0x57",
		"too large":         clientText + ":9223372036854775808",
		"space before":      " " + clientText + ":57",
		"space after":       clientText + ":57 ",
		"line end":          clientText + ":57\n",
		"no hyphens":        strings.ReplaceAll(clientText, "-", "") + ":57",
		"braces":            "{" + clientText + "}:57",
		"urn":               "urn:uuid:" + clientText + ":57",
		"hyphens displaced": "71b96ce82-746-4b0e-9d5f-3f6f0b8f3a11:57",
		"not hexadecimal":   "g1b96ce8" + clientText[8:] + ":57",
		"writer's field":    clientText + ":57:write",
		"in a transaction":  clientText + ":57:" + clientText,
		"other program's":   "host-7/worker-3",
	} {
		owner, err := ParseOwner(text)
		require.ErrorIs(t, err, limits.ErrInvalid, name)
		require.True(t, owner.IsZero(), name)
	}
}

func TestParseOwnerErrorQuotesPrefixOfLongText(t *testing.T) {
	t.Parallel()
	_, err := ParseOwner(strings.Repeat("é", 1000))
	require.ErrorContains(t, err, `"`+strings.Repeat("é", 32)+`"...`)
	require.Less(t, len(err.Error()), 200)
}

func TestOwnerRoundTripsThroughJSON(t *testing.T) {
	t.Parallel()
	type job struct {
		Owner Owner           `json:"owner"`
		Seen  map[Owner]int64 `json:"seen"`
	}
	sent := job{NewOwner(clientID, -3), map[Owner]int64{NewOwner(clientID, 9): 1}}
	text, err := json.Marshal(sent)
	require.NoError(t, err)
	require.JSONEq(t, `{"owner":"`+clientText+`:-3","seen":{"`+clientText+`:9":1}}`, string(text))

	var got job
	require.NoError(t, json.Unmarshal(text, &got))
	require.Equal(t, sent, got)
	require.ErrorIs(t, got.Owner.UnmarshalText([]byte("nobody")), limits.ErrInvalid)
	require.Equal(t, sent.Owner, got.Owner, "unchanged after an error")
}

// Not parallel: AllocsPerRun counts the whole process.
func TestOwnerStringAllocatesOnce(t *testing.T) {
	owner := NewOwner(clientID, math.MinInt64)
	var text string
	require.InDelta(t, 1, testing.AllocsPerRun(100, func() { text = owner.String() }), 0)

	buf := make([]byte, 0, ownerLen)
	require.Zero(t, testing.AllocsPerRun(100, func() { buf = owner.appendTo(buf[:0]) }))
	require.Equal(t, text, string(buf))

	require.Zero(t, testing.AllocsPerRun(100, func() { owner, _ = ParseOwner(text) }))
	require.Equal(t, text, owner.String())
}

func FuzzOwner(f *testing.F) {
	f.Add(clientText+":57", int64(57))
	f.Add(clientText+":-0", int64(math.MinInt64))
	f.Add("{"+clientText+"}:1", int64(-1))
	f.Add(strings.ToUpper(clientText)+":+1", int64(0))
	f.Fuzz(func(t *testing.T, text string, n int64) {
		if owner, err := ParseOwner(text); err == nil {
			require.Equal(t, text, owner.String(), "parse and format give the same bytes")
		} else {
			require.ErrorIs(t, err, limits.ErrInvalid)
		}

		var id uuid.UUID
		copy(id[:], text)
		owner := NewOwner(id, n)
		parsed, err := ParseOwner(owner.String())
		require.NoError(t, err)
		require.Equal(t, owner, parsed, "format and parse give the same owner")
	})
}
