package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const english = "# Title\n\nEnglish | [other](README.zh-CN.md)\n\nOne `Lock(ctx)`, see [docs](docs/a.md#x)\nand [below](#two).\n\n" +
	"    go run .\n\n```go\nx := 1 // one\n\ny := 2\n```\n\n- first\n  goes on\n- second\n\n## Two\n\n| a | b |\n|---|---|\n| c | d |\n\nLast.\n"

const chinese = "<!-- translated from README.md, sha256 " + "0000000000000000000000000000000000000000000000000000000000000000" + " -->\n\n" +
	"# 标题\n\n[English](README.md) | 中文\n\n一个 `Lock(ctx)`，见[下面](#二)和[文档](docs/a.md#x)。\n\n" +
	"    go run .\n\n```go\nx := 1 // one\n\ny := 2\n```\n\n- 第一\n- 第二\n\n## 二\n\n| 甲 | 乙 |\n|---|---|\n| 丙 | 丁 |\n\n完。\n"

func TestTranslationOfTheSameShapeIsOne(t *testing.T) {
	t.Parallel()
	require.Empty(t, differences(english, chinese))
	require.Error(t, current(english, chinese), "its stamp is that of another text")
	fresh, err := stamped(english, chinese)
	require.NoError(t, err)
	require.NoError(t, current(english, fresh))
	require.Equal(t, sections(chinese), sections(fresh), "nothing else was changed")
	require.Error(t, current(english+"More.\n", fresh), "the original has changed")

	_, err = stamped(english, strings.TrimPrefix(chinese, "<"))
	require.Error(t, err)
}

func TestTranslationThatLacksSomethingIsNoticed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][2]string{
		"a heading":           {"## 二\n\n", ""},
		"a heading's level":   {"## 二", "### 二"},
		"a paragraph":         {"\n完。\n", ""},
		"a list item":         {"- 第二\n", ""},
		"code that was kept":  {"y := 2", "y := 3"},
		"a comment in code":   {"// one", "// 一"},
		"a command":           {"    go run .", "    go run ./..."},
		"a block of code":     {"```go\nx := 1 // one\n\ny := 2\n```\n\n", ""},
		"a row":               {"| 丙 | 丁 |\n", ""},
		"a cell":              {"| 丙 | 丁 |", "| 丙 |"},
		"a column":            {"| 甲 | 乙 |\n|---|---|\n| 丙 | 丁 |", "| 甲 |\n|---|\n| 丙 |"},
		"where a link leads":  {"docs/a.md#x", "docs/a.md"},
		"a link":              {"[下面](#二)", "下面"},
		"the other language":  {"[English](README.md)", "English"},
		"a name in the prose": {"`Lock(ctx)`", "`Lock()`"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, 1, strings.Count(chinese, change[0]))
			require.NotEmpty(t, differences(english, strings.Replace(chinese, change[0], change[1], 1)))
		})
	}
}

// The same as make check, for runs of the tests alone.
func TestReadmesAreKeptTogether(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		require.NoError(t, err)
		return string(text)
	}
	require.Empty(t, differences(read(source), read(translation)))
	require.NoError(t, current(read(source), read(translation)))
	require.Greater(t, len(sections(read(source))), 10, "the check itself is broken")
}
