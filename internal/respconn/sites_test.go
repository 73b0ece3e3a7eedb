package respconn_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sites are the only functions outside of tests and benchmarks that make connections.
var sites = map[string]string{
	"internal/respconn/dial.go Dial":                 "the constructor",
	"internal/respconn/dial.go secure":               "the constructor",
	"internal/respconn/dial.go over":                 "the constructor, and guards a connection that the caller has made",
	"adapter/goredis/dial.go connect":                "go-redis dials, over LimitReplies",
	"adapter/rueidis/dial.go reach":                  "for NewConn of the library, which guards it",
	"embedded/server.go Dial":                        "in memory, to a server of this process",
	"examples/jobs/main.go run":                      "the example's own data, not a lock",
	"internal/tool/connect/probe.go accepts":         "reads nothing",
	"internal/tool/connect/probe.go ask":             "reads 256 bytes, and does not parse them",
	"cmd/redlatch/internal/hold/control_unix.go ask": "no server: the process that holds the lock",
	"cmd/redlatch/internal/hold/run.go notify":       "no server: systemd",
}

// makers are the functions and types that make connections, by package.
var makers = map[string]struct {
	pkg   string
	names []string
}{
	"github.com/gomodule/redigo/redis": {"redis", []string{"Dial", "DialContext", "DialTimeout", "DialURL", "DialURLContext", "NewConn"}},
	"github.com/redis/go-redis/v9":     {"redis", []string{"NewClient", "NewClusterClient", "NewFailoverClient", "NewUniversalClient"}},
	"github.com/redis/rueidis":         {"rueidis", []string{"NewClient"}},
	"crypto/tls":                       {"tls", []string{"Client", "Dial", "DialWithDialer", "Dialer"}},
	"net":                              {"net", []string{"Dial", "DialTCP", "DialTimeout", "DialUnix", "Dialer"}},
}

func TestConnectionsAreMadeInOnePlace(t *testing.T) {
	t.Parallel()
	const root = "../.."
	found := map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains([]string{"bench", "internal/test", "scripts", "test", "tools"}, name) ||
			strings.HasPrefix(name, ".") && name != "." || d.Name() == "testdata"):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			for _, function := range dialsIn(t, path) {
				found[name+" "+function] = true
			}
		}
		return nil
	}))
	require.Equal(t, slices.Sorted(maps.Keys(sites)), slices.Sorted(maps.Keys(found)),
		"use respconn.Dialer, or redlatch.NewConn for a connection of a caller's")
}

// dialsIn returns the functions of a file that make connections.
func dialsIn(t *testing.T, path string) (functions []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
	require.NoError(t, err)
	imported := map[string][]string{} // by the name in this file
	for _, i := range file.Imports {
		m := makers[strings.Trim(i.Path.Value, `"`)]
		if i.Name != nil {
			m.pkg = i.Name.Name
		}
		imported[m.pkg] = m.names
	}
	for _, decl := range file.Decls {
		function := "at the top"
		if f, is := decl.(*ast.FuncDecl); is {
			function = f.Name.Name
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			if s, is := n.(*ast.SelectorExpr); is {
				if pkg, is := s.X.(*ast.Ident); is && slices.Contains(imported[pkg.Name], s.Sel.Name) {
					functions = append(functions, function)
				}
			}
			return true
		})
	}
	return functions
}
