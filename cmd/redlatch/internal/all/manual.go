package all

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
)

// manual writes man pages and shell completions for packages. Each man page contains its command's help text
// verbatim, because it is already formatted for 80 columns.
type manual struct{ date, version string }

// newManual returns the hidden command that scripts/package-files.sh runs.
func newManual(*cli.Globals) *cobra.Command {
	var m manual
	cmd := &cobra.Command{
		Use:    "__manual DIR",
		Short:  "Write the man pages and the completions to a directory",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			date, err := time.Parse(time.RFC3339, m.date)
			if err != nil {
				return cli.Usagef("--date: %w", err)
			}
			m.date = date.UTC().Format(time.DateOnly)
			return m.write(cmd.Root(), args[0])
		},
	}
	cmd.Flags().StringVar(&m.date, "date", "", "date of the pages, as in RFC 3339")
	cmd.Flags().StringVar(&m.version, "of-version", "", "version shown in the pages")
	return cmd
}

func (m manual) write(root *cobra.Command, folder string) error {
	for _, sub := range []string{"man", "completions"} {
		if err := os.MkdirAll(filepath.Join(folder, sub), 0o755); err != nil { //nolint:gosec // for all users to read
			return err
		}
	}
	for _, cmd := range documented(root) {
		if err := m.writePage(cmd, filepath.Join(folder, "man", pageName(cmd)+".1.gz")); err != nil {
			return err
		}
	}
	for name, write := range map[string]func(string) error{
		"redlatch.bash": func(name string) error { return root.GenBashCompletionFileV2(name, true) },
		"redlatch.fish": func(name string) error { return root.GenFishCompletionFile(name, true) },
		"_redlatch":     root.GenZshCompletionFile,
	} {
		if err := write(filepath.Join(folder, "completions", name)); err != nil {
			return fmt.Errorf("completion %s: %w", name, err)
		}
	}
	return nil
}

// documented returns the commands that have a man page.
func documented(root *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{root}
	for _, cmd := range root.Commands() {
		if !cmd.Hidden && cmd.Name() != "help" && cmd.Name() != "completion" && !cmd.IsAdditionalHelpTopicCommand() {
			all = append(all, documented(cmd)...)
		}
	}
	return all
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// writePage writes a page, compressed without a timestamp or a file name, as Debian requires.
func (m manual) writePage(cmd *cobra.Command, name string) error {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write([]byte(m.page(cmd))); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(name, out.Bytes(), 0o644) //nolint:gosec // all users may read it
}

func (m manual) page(cmd *cobra.Command) string {
	var page strings.Builder
	name := pageName(cmd)
	fmt.Fprintf(&page, ".TH %q \"1\" %q %q \"Redlatch Manual\"\n", strings.ToUpper(name), m.date, strings.TrimSpace("redlatch "+m.version))
	section := func(title, text string) {
		text = strings.Trim(text, "\n")
		if text == "" {
			return
		}
		fmt.Fprintf(&page, ".SH %s\n.in 0\n.nf\n", title)
		for line := range strings.SplitSeq(text, "\n") {
			page.WriteString(verbatim(line) + "\n")
		}
		page.WriteString(".fi\n")
	}
	fmt.Fprintf(&page, ".SH NAME\n%s \\- %s\n", verbatim(name), verbatim(cmd.Short))
	use, other := cmd.UseLine(), "redlatch(1)\n"
	if !cmd.HasParent() {
		use, other = use+" COMMAND [flags] [ARG...]", ""
	}
	section("SYNOPSIS", use)
	description, codes, _ := strings.Cut(cmd.Long, "\nExit codes:\n")
	if !cmd.HasParent() {
		codes = cli.ExitCodesText()
	}
	section("DESCRIPTION", description)
	section("EXIT STATUS", codes)
	if !cmd.HasParent() {
		var commands strings.Builder
		for _, sub := range documented(cmd)[1:] {
			fmt.Fprintf(&commands, "%-23s %s\n", pageName(sub)+"(1)", sub.Short)
		}
		section("COMMANDS", commands.String())
	}
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	section("OPTIONS", cmd.LocalFlags().FlagUsagesWrapped(cli.Columns))
	section("GLOBAL OPTIONS", cmd.InheritedFlags().FlagUsagesWrapped(cli.Columns))
	section("EXAMPLES", cmd.Example)
	section("SEE ALSO", other+"https://github.com/redlatch/redlatch/tree/main/docs")
	return page.String()
}

// roff escapes special characters. Hyphens remain hyphens, so that readers can copy them.
var roff = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

func verbatim(line string) string {
	line = roff.Replace(line)
	if strings.HasPrefix(line, ".") {
		return `\&` + line
	}
	return line
}
