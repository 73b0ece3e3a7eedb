package inspect

import (
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

func TestPatternsMatchLikeRedis(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern string
		yes, no []string
	}{
		{"", []string{""}, []string{"a"}},
		{"*", []string{"", "a", "{x}y"}, nil},
		{"**", []string{"a"}, []string{""}},
		{"a?c", []string{"abc", "a\xffc"}, []string{"ac", "abbc"}},
		{"a*b*c", []string{"abc", "aXbYbZc"}, []string{"abcd", "acb"}},
		{"[a-c]x[^d]", []string{"axe", "cx\n"}, []string{"dxe", "axd", "ax"}},
		{`\*[\]]`, []string{"*]"}, []string{"x]"}},
		{"orders:*:eu", []string{"orders:42:eu"}, []string{"orders:42:us"}},
	} {
		for _, name := range c.yes {
			require.True(t, Match(c.pattern)(name), "%q matches %q", name, c.pattern)
		}
		for _, name := range c.no {
			require.False(t, Match(c.pattern)(name), "%q does not match %q", name, c.pattern)
		}
	}
}

func TestManyStarsMatchQuickly(t *testing.T) {
	t.Parallel()
	stars, name := "", ""
	for range 30 {
		stars, name = stars+"a*", name+"aaaaaaaaaa"
	}
	require.False(t, Match(stars+"b")(name))
}

func TestServerMatchesLikeGlob(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	names := []string{""}
	for i := 0; len(names[i]) < 3; i++ { // all names of up to three of these letters
		for _, letter := range `ab-^]*` {
			names = append(names, names[i]+string(letter))
		}
	}
	names = names[1:] // no lock has an empty name, and Redis does not find one with **
	for _, name := range names {
		s.Do(t, "SET", name, "x")
	}
	letters := rapid.SampledFrom([]rune(`ab-*?[]^\`))
	rapid.Check(testlevel.Drawn{T: t}, func(rt *rapid.T) {
		pattern := rapid.StringOfN(letters, 1, 6, -1).Draw(rt, "pattern")
		found, err := redis.Strings(s.Do(t, "KEYS", pattern), nil)
		require.NoError(rt, err)
		var ours []string
		for _, name := range names {
			if Match(pattern)(name) {
				ours = append(ours, name)
			}
		}
		require.ElementsMatch(rt, found, ours, "pattern %q", pattern)
	})
}

func TestLiteralMatchesOnlyItself(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"orders:42", "a*b", "a?[b]", `a\b`, "{eu}x"} {
		require.True(t, Match(Literal(name))(name))
		require.False(t, Match(Literal(name))(name+"x"))
		require.Equal(t, name != "orders:42" && name != "{eu}x", IsPattern(name))
	}
	require.False(t, Match(Literal("a*b"))("axb"))
}
