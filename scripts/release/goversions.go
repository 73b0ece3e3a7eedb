package main

import (
	"errors"
	"fmt"
	"go/version"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// saying is where a file says which Go version a module needs.
type saying struct {
	file    string
	pattern string // its group is the version, without the patch
	folder  string // of the module
}

// sayings are all of them. The module tools stands for contributors, who need the linter.
var sayings = []saying{
	{"README.md", `with Go (\S+) or later`, "."},
	{"README.md", `goredis needs Go (\d+\.\d+)`, "adapter/goredis"},
	{"README.zh-CN.md", `装有 Go (\S+) `, "."},
	{"README.zh-CN.md", `goredis 需要 Go (\d+\.\d+)`, "adapter/goredis"},
	{"CONTRIBUTING.md", `need Go \((\S+) or later`, "."},
	{"CONTRIBUTING.md", `(\S+) for the linter\)`, "tools"},
	{"docs/quickstart.md", `need Go (\S+) or later`, "."},
	{".github/workflows/ci.yml", `tests \(Go (\S+)\)`, "."},
	{".github/workflows/ci.yml", `GOTOOLCHAIN: local\n(?:.*\n)*?\s+go-version: "(\S+)"`, "."},
	{".github/workflows/release.yml", `go-version: "(\S+)"`, "tools/packages"},
	{".github/workflows/ci.yml", `all checks \(Go (\S+)\)`, "tools"},
}

// promisedIn is the page with a table of the modules and the Go version that each needs.
const promisedIn = "docs/compatibility.md"

// checkGoVersions refuses modules that need another Go version than their dependencies do, and
// pages that say another one than the modules.
func (r *repo) checkGoVersions() error {
	core := r.modules[0].file.Go.Version
	says := append([]saying(nil), sayings...)
	var wrong error
	needed := map[string]string{}
	for _, m := range r.modules {
		needed[m.folder] = m.file.Go.Version
		if !m.published() {
			continue
		}
		most, err := r.neededBy(m)
		switch want := later(core, most); {
		case err != nil:
			return err
		case m.folder != "." && m.file.Go.Version != want:
			wrong = errors.Join(wrong, fmt.Errorf("%s/go.mod says go %s; the core and what it requires need %s", m.folder, m.file.Go.Version, want))
		case version.Compare("go"+most, "go"+core) > 0 && m.folder == ".":
			wrong = errors.Join(wrong, fmt.Errorf("go.mod says go %s; what it requires needs %s", core, most))
		}
		says = append(says, saying{promisedIn, fmt.Sprintf("\\| `%s` \\| (\\S+) \\|", regexp.QuoteMeta(m.path())), m.folder})
	}
	for _, s := range says {
		wrong = errors.Join(wrong, s.check(r.root, needed[s.folder]))
	}
	return wrong
}

// neededBy returns the newest Go version that a module's dependencies need.
func (r *repo) neededBy(m module) (string, error) {
	out, err := r.goCommand(filepath.Join(r.root, m.folder), "list", "-mod=readonly", "-m", "-f",
		"{{if not .Main}}{{with .GoVersion}}{{.}}{{end}}{{end}}", "all")
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	most := "1.0"
	for v := range strings.FieldsSeq(out) {
		most = later(most, v)
	}
	return most, nil
}

// later returns the newer one of two Go versions.
func later(a, b string) string {
	if version.Compare("go"+a, "go"+b) < 0 {
		return b
	}
	return a
}

// check holds that the file says the version that is needed, once or more.
func (s saying) check(root, needed string) error {
	text, err := os.ReadFile(filepath.Join(root, s.file)) //nolint:gosec // a file of the checkout
	if err != nil {
		return err
	}
	want := strings.TrimPrefix(version.Lang("go"+needed), "go")
	found := regexp.MustCompile(s.pattern).FindAllStringSubmatch(string(text), -1)
	if len(found) == 0 {
		return fmt.Errorf("%s does not say that %s needs Go %s (%s)", s.file, s.folder, want, s.pattern)
	}
	for _, f := range found {
		if f[1] != want {
			return fmt.Errorf("%s says Go %s where %s needs %s", s.file, f[1], s.folder, want)
		}
	}
	return nil
}
