// Program plainwords counts the words for people in the comments of all Go files, nested modules
// included: "nobody", "whoever", "those who" and the like. A comment that names the thing instead
// (the owner, the caller, the next waiter) needs no translation. The program fails above a bound
// for 1,000 lines of comments. Run it from the root:
//
//	go run ./scripts/plainwords          the figure, and the packages with the most
//	go run ./scripts/plainwords -v       each line, too
//	go run ./scripts/plainwords -max 2   with another bound
//
// Generated files and testdata are left out, and so is text between double quotation marks.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// bound is the level that was reached, rounded up to a tenth. Only lower it.
const bound = 0.2

var (
	people    = regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|everybody|whoever|whomever|those who|one who|he who|who has|who is)\b`)
	quotation = regexp.MustCompile(`"[^"]*"`)
)

func main() {
	most := flag.Float64("max", bound, "fail above so many for 1,000 lines of comments")
	verbose := flag.Bool("v", false, "print each line")
	flag.Parse()
	c := count{checkout: os.DirFS("."), folders: map[string]int{}}
	if err := fs.WalkDir(c.checkout, ".", c.visit); err != nil {
		fmt.Fprintln(os.Stderr, "plainwords:", err)
		os.Exit(2)
	}
	if *verbose {
		fmt.Println(strings.Join(c.found, "\n"))
	}
	fmt.Println(c.summary())
	if c.rate() > *most {
		fmt.Fprintf(os.Stderr, "plainwords: at most %.1f are allowed; go run ./scripts/plainwords -v lists them\n", *most)
		os.Exit(1)
	}
}

// count is what was counted so far.
type count struct {
	checkout fs.FS

	lines   int // of comments
	people  int
	folders map[string]int // people by folder
	found   []string
}

// rate is the number of words for 1,000 lines of comments. No lines count as too many: then
// the check itself is broken.
func (c *count) rate() float64 {
	if c.lines == 0 {
		return 1000
	}
	return 1000 * float64(c.people) / float64(c.lines)
}

func (c *count) summary() string {
	text := fmt.Sprintf("plainwords: %d words for people in %d lines of comments, %.1f per 1,000", c.people, c.lines, c.rate())
	folders := slices.SortedFunc(maps.Keys(c.folders), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.folders[b], c.folders[a]), cmp.Compare(a, b))
	})
	for _, folder := range folders[:min(5, len(folders))] {
		text += fmt.Sprintf("\n  %4d %s", c.folders[folder], folder)
	}
	return text
}

func (c *count) visit(file string, d fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	name := d.Name()
	if d.IsDir() {
		skipped := strings.HasPrefix(name, ".") || slices.Contains([]string{"testdata", "vendor", "bin", "target"}, name)
		if skipped && file != "." {
			return fs.SkipDir
		}
		return nil
	}
	if !strings.HasSuffix(name, ".go") {
		return nil
	}
	text, err := fs.ReadFile(c.checkout, file)
	if err != nil {
		return err
	}
	return c.file(file, text)
}

// file counts the comments of one file.
func (c *count) file(name string, text []byte) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil {
		return err
	}
	if ast.IsGenerated(f) {
		return nil
	}
	for _, group := range f.Comments {
		for _, comment := range group.List {
			first := fset.Position(comment.Pos()).Line
			for i, line := range strings.Split(comment.Text, "\n") {
				c.lines++
				n := len(people.FindAllString(quotation.ReplaceAllString(line, ""), -1))
				if n > 0 {
					c.people += n
					c.folders[path.Dir(name)] += n
					c.found = append(c.found, fmt.Sprintf("%s:%d: %s", name, first+i, strings.TrimSpace(line)))
				}
			}
		}
	}
	return nil
}
