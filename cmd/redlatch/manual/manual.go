// Package manual is the hidden command that writes what packages bring beside the program: a man page
// for redlatch and for each of its commands, and the completions of three shells. All of it is made
// from the commands' own help, so no page is written by hand.
//
//	the commands ─▶ page: sections ─▶ text: paragraphs, lists, code ─▶ roff ─▶ DIR/man/*.1.gz
//	      └───────▶ cobra's generators ─▶ DIR/completions
package manual

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/internal/tool/cli"
)

// command is the name of the command, which .goreleaser.yaml runs.
const command = "__manual"

// options are the flags of the command.
type options struct {
	date    string
	version string
}

// New returns the command. It asks no server.
func New(*cli.Globals) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:    command + " DIR",
		Short:  "Write the man pages and the completions into a folder",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.write(cmd.Root(), args[0])
		},
	}
	cmd.Flags().StringVar(&o.date, "date", "", "date of the pages, as in RFC 3339")
	cmd.Flags().StringVar(&o.version, "of-version", "", "version that the pages are of")
	return cmd
}

// write writes all files. What is the same in help, date and version is the same in all bytes.
func (o *options) write(root *cobra.Command, folder string) error {
	date, err := time.Parse(time.RFC3339, o.date)
	if err != nil {
		return cli.Usagef("--date: %w", err)
	}
	e := edition{date: date.UTC().Format(time.DateOnly), version: o.version}
	files := map[string][]byte{}
	for _, cmd := range documented(root) {
		packed, err := packed(e.page(cmd))
		if err != nil {
			return err
		}
		files[filepath.Join("man", pageName(cmd)+".1.gz")] = packed
	}
	if err := completions(root, files); err != nil {
		return err
	}
	for name, text := range files {
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // for all users to read
			return err
		}
		if err := os.WriteFile(name, text, 0o644); err != nil { //nolint:gosec // for all users to read
			return err
		}
	}
	return nil
}

// documented returns the commands that have a page: the root, and all that are no helpers of cobra's
// or of redlatch itself.
func documented(root *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{root}
	for _, cmd := range root.Commands() {
		if !cmd.Hidden && cmd.Name() != "help" && cmd.Name() != "completion" {
			all = append(all, cmd)
		}
	}
	return all
}

// pageName returns the name that man finds the page of a command by.
func pageName(cmd *cobra.Command) string {
	return strings.ReplaceAll(cmd.CommandPath(), " ", "-")
}

// packed compresses a page as Debian wants it, without a time and a name.
func packed(text string) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write([]byte(text)); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// completions adds the scripts of the shells, by the names that the shells look for.
func completions(root *cobra.Command, files map[string][]byte) error {
	for name, write := range map[string]func(*bytes.Buffer) error{
		"redlatch.bash": func(b *bytes.Buffer) error { return root.GenBashCompletionV2(b, true) },
		"redlatch.fish": func(b *bytes.Buffer) error { return root.GenFishCompletion(b, true) },
		"_redlatch":     func(b *bytes.Buffer) error { return root.GenZshCompletion(b) },
	} {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			return fmt.Errorf("completion %s: %w", name, err)
		}
		files[filepath.Join("completions", name)] = out.Bytes()
	}
	return nil
}
