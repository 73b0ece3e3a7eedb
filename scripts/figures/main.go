package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	strict := flag.Bool("strict", false, "fail when a table is outdated")
	check := flag.Bool("check", false, "only look for tables without an origin")
	take := flag.String("take", "", "run the command of the table of this `name`, and write what it prints")
	flag.Parse()
	if err := run(*strict, *check, *take); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run(strict, check bool, take string) error {
	docs, err := documents()
	if err != nil {
		return err
	}
	var all []origin
	for _, d := range docs {
		found, err := origins(d.name, d.text)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	switch {
	case check:
		return nil
	case take != "":
		return measure(all, take)
	}
	return list(all, strict)
}

// document is one page of the documentation.
type document struct{ name, text string }

func documents() ([]document, error) {
	names, err := filepath.Glob("docs/*.md")
	if err != nil {
		return nil, err
	}
	below, err := filepath.Glob("docs/*/*.md")
	if err != nil {
		return nil, err
	}
	docs := make([]document, 0, len(names)+len(below)+1)
	for _, name := range slices.Concat([]string{"README.md"}, names, below) {
		text, err := os.ReadFile(name) //nolint:gosec // documents of the checkout
		if err != nil {
			return nil, err
		}
		docs = append(docs, document{name, string(text)})
	}
	return docs, nil
}

// list prints where tables stand and how many files have changed since they were measured.
func list(all []origin, strict bool) error {
	var outdated int
	var late strings.Builder
	for _, o := range all {
		n, err := changes(o)
		switch {
		case err != nil:
			outdated++
			fmt.Fprintf(&late, "%s:%d: %s, %s: %v\n", o.file, o.line, o.command, o.date, err)
		case n > 0:
			outdated++
			fmt.Fprintf(&late, "%s:%d: %s, commit %s, %s: %d files have changed since\n", o.file, o.line, o.command, o.commit, o.date, n)
		default:
			fmt.Printf("%s:%d: %s, commit %s, %s: current\n", o.file, o.line, o.command, o.commit, o.date)
		}
	}
	fmt.Print(late.String())
	fmt.Printf("figures: %d tables, %d outdated\n", len(all), outdated)
	if strict && outdated > 0 {
		return errors.New("tables are outdated")
	}
	return nil
}

// changes counts the files that differ from the commit of a table, of those that its command
// measures.
func changes(o origin) (int, error) {
	if out, err := git("cat-file", "-t", o.commit); err != nil || strings.TrimSpace(out) != "commit" {
		return 0, fmt.Errorf("commit %s is not in this repository", o.commit)
	}
	out, err := git(append([]string{"diff", "--name-only", o.commit, "--"}, o.measures()...)...)
	if err != nil {
		return 0, err
	}
	n := 0
	for name := range strings.Lines(out) {
		name = strings.TrimSuffix(name, "\n")
		if strings.HasSuffix(name, ".lua") || strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			n++
		}
	}
	return n, nil
}

// git returns the output of a git command.
func git(args ...string) (string, error) {
	cmd := exec.Command("git", args...) //nolint:gosec // the arguments are this program's own
	out, err := cmd.Output()
	return string(out), err
}

// measure runs the command of a table and writes what it prints.
func measure(all []origin, name string) error {
	i := slices.IndexFunc(all, func(o origin) bool { return o.name == name })
	if i < 0 {
		return fmt.Errorf("no table is called %q", name)
	}
	o := all[i]
	out, err := output(o.command)
	if err != nil {
		return err
	}
	commit, err := git("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
	if err != nil {
		return err
	}
	text, err := os.ReadFile(o.file)
	if err != nil {
		return err
	}
	o.commit, o.date = strings.TrimSpace(commit), time.Now().Format(time.DateOnly)
	changed, err := o.replace(string(text), out)
	if err != nil {
		return err
	}
	return os.WriteFile(o.file, []byte(changed), 0o644) //nolint:gosec // a document
}

// output runs a command of the documents in a shell, as a reader of them does, and returns what
// it prints. That also goes to standard error: a command that fails has said why.
func output(command string) (string, error) {
	var out strings.Builder
	cmd := exec.Command("sh", "-c", command) //nolint:gosec // the documents are this program's own
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, os.Stderr), os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w", command, err)
	}
	return out.String(), nil
}
