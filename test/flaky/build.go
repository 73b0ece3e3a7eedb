package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tested lists the packages that have tests, with their folders.
const tested = `{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}`

// build compiles the tests of packages into dir.
func build(ctx context.Context, dir string, packages []string) (all []*suite, err error) {
	list := exec.CommandContext(ctx, "go", append([]string{"list", "-f", tested}, packages...)...) //nolint:gosec // packages of this module
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for i, line := range strings.Fields(string(out)) {
		if i%2 == 0 {
			all = append(all, &suite{pkg: line, binary: filepath.Join(dir, fmt.Sprintf("%d.test", i))})
			continue
		}
		s := all[len(all)-1]
		s.dir = line
		if s.fake, s.others, err = fakeTests(os.DirFS(s.dir)); err != nil {
			return nil, err
		}
		compile := exec.CommandContext(ctx, "go", "test", "-race", "-c", "-o", s.binary, s.pkg) //nolint:gosec // as above
		if said, err := compile.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("the tests of %s do not compile: %w\n%s", s.pkg, err, said)
		}
	}
	return all, nil
}
