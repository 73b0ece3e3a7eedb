package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/doctor"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/ui"
)

// The exit codes of doctor beside 0.
const (
	codeWarnings = 1
	codeErrors   = 2
)

const doctorHelp = `Examines a server: whether it does what locks need, now and on a bad day. Each
check is a line: ok, warning, error, or unknown where the server does not let
this user look. What to do stands beside it, and what to send below it.

The checks: what the server is; scripts, a plain lock, a fair lock, a message;
what Redisson's AUTO chooses for sharded pub/sub; the rights of this user, for
names that begin with --prefix; whether dead waiters can be told; eviction,
persistence, replicas, keepalive; clock and latency.

Rights are found out by trying: each command is sent in a form that changes
nothing. What is written, a lock of doctor's own below --prefix, has a time to
live, and is removed.

Exit codes:
  0  no errors (--strict: and no warnings)
  1  warnings, with --strict
  2  errors, or the server could not be examined`

// diagnosis is what doctor has to tell.
type diagnosis struct {
	Server   string           `json:"server"`
	Findings []doctor.Finding `json:"findings"`
	Worst    doctor.Level     `json:"worst"`
}

func newDoctor(g *globals) *cobra.Command {
	var prefix string
	var asJSON, strict bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine a server: does it do what locks need?",
		Long:  doctorHelp,
		Example: `  redlatch doctor
  redlatch doctor --user locks --prefix app:      # the rights of this user
  redlatch doctor --strict --json | jq '.findings[] | select(.level != "ok")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			srv, err := g.server()
			if err != nil {
				return &exitError{code: codeErrors, err: err}
			}
			findings, err := doctor.Examine(cmd.Context(), srv, prefix)
			if err != nil {
				return &exitError{code: codeErrors, err: err}
			}
			d := &diagnosis{Server: srv.String(), Findings: findings, Worst: doctor.Worst(findings)}
			if asJSON {
				err = printJSON(cmd, d)
			} else {
				d.print(cmd.OutOrStdout(), ui.LookOf(os.Stdout))
			}
			if err != nil {
				return err
			}
			return d.exit(strict)
		},
	}
	f := cmd.Flags()
	f.StringVar(&prefix, "prefix", "", "what the names of the locks begin with")
	f.BoolVar(&strict, "strict", false, "exit with 1 when there are warnings")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// exit makes the exit code.
func (d *diagnosis) exit(strict bool) error {
	switch {
	case d.Worst == doctor.Error:
		return &exitError{code: codeErrors}
	case d.Worst == doctor.Warning && strict:
		return &exitError{code: codeWarnings}
	}
	return nil
}

// print tells people.
func (d *diagnosis) print(w io.Writer, look ui.Look) {
	fmt.Fprintf(w, "%s\n", d.Server)
	counts := map[doctor.Level]int{}
	for i := range d.Findings {
		f := &d.Findings[i]
		counts[f.Level]++
		fmt.Fprint(w, finding(f, look))
	}
	fmt.Fprintf(w, "%s, %s\n", countOf(counts[doctor.Error], "error"), countOf(counts[doctor.Warning], "warning"))
}

// countOf counts things in words.
func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// checkColumn is where a line says what was found.
const checkColumn = 22

// finding shows one, in lines that fit a terminal. What is to be sent is not broken.
func finding(f *doctor.Finding, look ui.Look) string {
	text := f.Found
	if f.Advice != "" {
		text += ". " + f.Advice
	}
	head := fmt.Sprintf("%-8s %-12s ", f.Level, f.Check)
	lines := wrapped(text, columns-1-checkColumn) // a full line would make some terminals wrap
	var b strings.Builder
	b.WriteString(look.Paint(colourOf(f.Level), head[:8]) + head[8:] + lines[0] + "\n")
	for _, line := range lines[1:] {
		b.WriteString(strings.Repeat(" ", checkColumn) + line + "\n")
	}
	if f.Command != "" {
		b.WriteString("    " + f.Command + "\n")
	}
	return b.String()
}

func colourOf(l doctor.Level) ui.Colour {
	switch l {
	case doctor.OK:
		return ui.Green
	case doctor.Warning:
		return ui.Yellow
	case doctor.Error:
		return ui.Red
	case doctor.Unknown:
	}
	return ui.Dim
}

// wrapped breaks text into lines of at most so many columns, at least one.
func wrapped(text string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
