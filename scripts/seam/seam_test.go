package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// contextSource stands for the standard library's package, which takes long to load.
const contextSource = `package context
type Context interface{ Err() error }`

// fixture is a package of two files. Its walk goes a, b, a, b, a.
var fixture = map[string]string{
	"a.go": `package p
import "context"
type waiter interface{ wait(context.Context) }
type loop struct { *inner; n int; w waiter }
func (l *loop) begin(ctx context.Context) { l.take(ctx); l.w.wait(ctx); l.take(ctx) }
func (l *loop) unused() int { return l.n }`,
	"b.go": `package p
import "context"
type inner struct { deep int }
type sleeper struct{}
func (l *loop) take(ctx context.Context) { l.deep++; func() { l.begin(ctx) }() }
func (*sleeper) wait(context.Context) { plain() }
func plain() {}`,
}

func load(t *testing.T) *library {
	t.Helper()
	l := &library{fset: token.NewFileSet(), root: ".", decls: map[*types.Func]*decl{}}
	file, err := parser.ParseFile(l.fset, "context.go", contextSource, 0)
	require.NoError(t, err)
	std, err := (&types.Config{}).Check("context", l.fset, []*ast.File{file}, nil)
	require.NoError(t, err)
	var files []*ast.File
	for _, name := range []string{"a.go", "b.go"} {
		file, err := parser.ParseFile(l.fset, name, fixture[name], 0)
		require.NoError(t, err)
		files = append(files, file)
	}
	require.NoError(t, l.check(module+"/rlock", files, importFunc(func(string) (*types.Package, error) { return std, nil })))
	return l
}

func TestTheWalkCountsStopsAndReturns(t *testing.T) {
	l := load(t)
	w := walk{lib: l, seen: map[*types.Func]bool{}}
	w.visit(l.function(name{"rlock", "loop", "begin"}))
	assert.Equal(t, []string{"a.go", "b.go", "a.go", "b.go", "a.go"}, w.path)
	stops, returns := w.stops()
	assert.Equal(t, 5, stops)
	assert.Equal(t, 3, returns)
	assert.Len(t, w.seen, 3, "what gets no context is not entered")
}

func TestKnowledgeIsTypesAndSelectedFields(t *testing.T) {
	l := load(t)
	k := knowledge{lib: l, types: map[string]bool{}, fields: map[string]bool{}}
	k.learn(l.decls[l.function(name{"rlock", "loop", "take"})])
	assert.Equal(t, []string{"p.inner", "p.loop"}, sorted(k.types))
	assert.Equal(t, []string{"p.inner.deep"}, sorted(k.fields))
}

func TestABlockThatRanMarksItsFunction(t *testing.T) {
	l := load(t)
	ran, err := l.executed("mode: atomic\n" + module + "/a.go:5.42,5.60 1 1\n" + module + "/b.go:7.14,7.15 1 0\n")
	require.NoError(t, err)
	assert.Len(t, ran, 1)
	assert.Contains(t, ran, l.decls[l.function(name{"rlock", "loop", "begin"})])
}

func TestReleaseFilesAreRecognised(t *testing.T) {
	for text, want := range map[string]bool{
		`interface{ Release(c *transport.Call, a *Acquisition, target int64) }`: true,
		`interface{ Release(c *transport.Call, r *Request) }`:                   false,
		`interface{ Release() }`: false,
	} {
		e, err := parser.ParseExpr(text)
		require.NoError(t, err)
		iface, ok := e.(*ast.InterfaceType)
		require.True(t, ok)
		assert.Equal(t, want, describesRelease(iface), text)
	}
	assert.True(t, mutatesRelease("file   internal/luasrc/fair_release.lua\n"))
	assert.False(t, mutatesRelease("file   rlock/release.go\n"))
}
