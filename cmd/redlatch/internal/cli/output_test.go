package cli

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/redlatch/redlatch/internal/test/testlevel"
)

var hostile = []string{
	"", "no", "yes", "null", "~", "-", "- a", "a: b", "#a", "1e3", "0x1f", "1:30", "2026-01-01", "=", "<<", "!!int 3", "*a", "&a", "%a",
	"a\nb", "a\x1b[2Jb", "\u202eevil", "\u2028", "\x7f", "\u0085", "\ufeff", "\ufffe", "\U000e0041", "a\tb", " a ", `a"b'c\d`, "🔒", "\xff\xfe", "a\x00b",
}

func anyName() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom(hostile), rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
}

func TestYAMLHoldsSameValuesAsJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(testlevel.Drawn{T: t}, func(t *rapid.T) {
		type inner struct {
			Owner string `json:"owner"`
			Left  *int64 `json:"left_ms"`
		}
		what := struct {
			Name  string   `json:"name"`
			Held  bool     `json:"held"`
			Queue []inner  `json:"queue"`
			None  []string `json:"none"`
			N     int64    `json:"n"`
			inner
		}{Name: anyName().Draw(t, "name"), Queue: []inner{}, N: rapid.Int64().Draw(t, "n")}
		for _, owner := range rapid.SliceOfN(anyName(), 0, 3).Draw(t, "owners") {
			what.Queue = append(what.Queue, inner{Owner: owner, Left: &what.N})
		}
		var fromJSON, fromYAML, items any
		require.NoError(t, json.Unmarshal([]byte(shownAs(t, formatJSON, what)), &fromJSON))
		text := shownAs(t, formatYAML, what)
		require.NoError(t, yaml.Unmarshal([]byte(text), &fromYAML), text)
		requireSame(t, fromJSON, fromYAML)
		require.True(t, strings.HasPrefix(text, `name: "`), "the order of JSON: %s", text)

		var sequence strings.Builder
		o := Output{format: formatYAML}
		for range 2 {
			require.NoError(t, o.Item(&sequence, what))
		}
		require.NoError(t, yaml.Unmarshal([]byte(sequence.String()), &items))
		requireSame(t, []any{fromJSON, fromJSON}, items)
	})
}

func shownAs(t *rapid.T, format string, what any) string {
	var out strings.Builder
	o := Output{format: format}
	require.NoError(t, o.Document(&out, what))
	for _, r := range out.String() {
		require.True(t, r == '\n' || unicode.IsGraphic(r), "%U on a terminal", r)
	}
	return out.String()
}

func requireSame(t *rapid.T, fromJSON, fromYAML any) {
	want, err := json.Marshal(fromJSON)
	require.NoError(t, err)
	got, err := json.Marshal(fromYAML)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(got))
}

// Other readers of YAML, such as version 1.1, know more words and numbers.
func TestYAMLQuotesEveryString(t *testing.T) {
	t.Parallel()
	for _, name := range hostile {
		var out strings.Builder
		require.NoError(t, printYAML(&out, map[string]string{"name": name}))
		require.Regexp(t, `^name: ".*"\n$`, out.String())
	}
}

func TestNameIsOneReversibleWord(t *testing.T) {
	t.Parallel()
	escape := regexp.MustCompile(`\\0([0-7]{3})`)
	rapid.Check(testlevel.Drawn{T: t}, func(t *rapid.T) {
		name := anyName().Draw(t, "name")
		word := Name(name)
		require.NotRegexp(t, `^-|[\s"'*?[]`, word)
		for _, r := range word {
			require.True(t, unicode.IsGraphic(r) && !unicode.IsSpace(r), "%U", r)
		}
		require.Equal(t, name, escape.ReplaceAllStringFunc(word, func(e string) string {
			b, err := strconv.ParseUint(e[2:], 8, 8)
			require.NoError(t, err)
			return string([]byte{byte(b)})
		}))
	})
	require.Equal(t, "orders:42/日本-🔒", Name("orders:42/日本-🔒"))
	const odd = "-f victim\nx\"7*?[/é\xff"
	require.Equal(t, `\0055f\0040victim\0012x\00427\0052\0077\0133/é\0377`, Name(odd))
	out, err := exec.Command("sh", "-c", `for word in $1; do printf %b "$word"; done`, "sh", Name(odd)).Output()
	require.NoError(t, err)
	require.Equal(t, odd, string(out))
}

func TestFormatFlagsMustAgree(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"": "", "--json": "json", "-o json --json": "json", "-o yaml --json": "", "--json -o yaml": "", "--json --json=false": "", "-oname": "name", "--output=wide --json=false": "wide",
	} {
		var o Output
		cmd := &cobra.Command{Use: "list"}
		o.RegisterTable(cmd, "")
		err := cmd.ParseFlags(strings.Fields(line))
		if strings.Contains(line, "yaml") {
			require.ErrorContains(t, err, "flag: the output format is already ", line)
			continue
		}
		require.NoError(t, err, line)
		require.Equal(t, want, o.format, line)
	}
}
