package show

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/tool/diagnosis"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

const (
	codeWarnings = 1
	codeErrors   = 2
)

const doctorHelp = `Examines a server: whether it does what locks need, now and on a bad day. Each
check is a line: ok, warning, error, or unknown where the server does not let
this user look. It says what to do, and below it what to send.

The checks: what the server is; whether a cluster serves all slots, and moves
any; scripts, a plain lock, a fair lock, a message;
what Redisson's AUTO chooses for sharded pub/sub; the rights of this user, for
names that begin with --prefix; whether dead waiters can be detected; eviction,
persistence, replicas, keepalive; clock and latency.

Rights are looked at need by need, as docs/operations.md lists them; those with
a * only when --need names them:

  plain      plain locks             doubt      replies that were lost
  braces     names with own braces   replicas   WithReplicaSync
  fair       fair locks              labels     WithLabel
  tokens     fencing tokens *        names      WithClientName
  read-write read/write locks *      owners     WithOwner, Resume, UnlockAs
  latches    count-down latches *    inspect    admin.Inspect, in a program
  semaphores semaphores *            onlooker   redlatch list, status, watch
  clocks     clocks that are apart   operator   redlatch unlock, evict
  listeners  dead waiters            viewer     a user for admin.Inspect only *

What plain locks lack is an error, and what others lack a warning. With --need
nothing else is looked at, and what is missing is an error; needs of programs
bring plain along.

Rights are found out by trying: each command is sent in a form that changes
nothing. What cannot be tried is named. What is written, a lock of doctor's own
below --prefix, has a time to live, and is removed.

In a cluster each master is examined. Where they differ the worst finding is
shown, with its address.

Exit codes:
  0  no errors (--strict: and no warnings)
  1  warnings, with --strict
  2  errors, the server could not be examined, or the command line is wrong`

type report struct {
	Server   string              `json:"server"`
	Findings []diagnosis.Finding `json:"findings"`
	Worst    diagnosis.Level     `json:"worst"`
}

// NewDoctor returns the command doctor.
func NewDoctor(g *cli.Globals) *cobra.Command {
	var prefix string
	var needs []string
	var asJSON, strict bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine a server: does it do what locks need?",
		Long:  doctorHelp,
		Example: `  redlatch doctor
  redlatch doctor --user locks --prefix app:      # the rights of this user
  redlatch doctor --need fair,listeners --strict  # the needs of a program
  redlatch doctor --strict --json | jq '.findings[] | select(.level != "ok")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkNeeds(cmd, needs); err != nil {
				return err
			}
			if !acl.CanHold(prefix) {
				return cli.Usagef("--prefix %q: a rule of ACL SETUSER cannot hold white space, quotes or control characters", prefix)
			}
			d, err := examined(cmd, g, prefix, needs)
			if err != nil {
				return &cli.ExitError{Code: codeErrors, Err: err}
			}
			if err := cli.Print(cmd, asJSON, d, d.print); err != nil {
				return err
			}
			return d.exit(strict)
		},
	}
	f := cmd.Flags()
	f.StringVar(&prefix, "prefix", "", "what the names of the locks begin with")
	f.StringSliceVar(&needs, needFlag, nil, "what the user is there for, such as fair,listeners (default: anything)")
	f.BoolVar(&strict, "strict", false, "exit with 1 when there are warnings")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	cli.CompleteValues(cmd, needFlag, diagnosis.Needs()...)
	return cmd
}

func examined(cmd *cobra.Command, g *cli.Globals, prefix string, needs []string) (*report, error) {
	srv, err := g.Server()
	if err != nil {
		return nil, err
	}
	findings, err := diagnosis.Examine(cmd.Context(), diagnosis.Examination{Server: srv, Prefix: prefix, Needs: needs})
	if err != nil {
		return nil, err
	}
	return &report{Server: srv.String(), Findings: findings, Worst: diagnosis.Worst(findings)}, nil
}

const needFlag = "need"

func checkNeeds(cmd *cobra.Command, needs []string) error {
	known := diagnosis.Needs()
	unknown := func(need string) bool { return !slices.Contains(known, need) }
	if slices.ContainsFunc(needs, unknown) || cmd.Flags().Changed(needFlag) && len(needs) == 0 {
		return cli.Usagef("--need must be one of %s, or several with commas between", strings.Join(known, ", "))
	}
	return nil
}

func (d *report) exit(strict bool) error {
	switch {
	case d.Worst == diagnosis.Error:
		return &cli.ExitError{Code: codeErrors}
	case d.Worst == diagnosis.Warning && strict:
		return &cli.ExitError{Code: codeWarnings}
	}
	return nil
}

func (d *report) print(w io.Writer) {
	fmt.Fprintf(w, "%s\n", d.Server)
	counts := map[diagnosis.Level]int{}
	idle := false // there may be warnings that no need of this user causes
	for i := range d.Findings {
		f := &d.Findings[i]
		counts[f.Level]++
		idle = idle || f.Level == diagnosis.Warning && strings.HasSuffix(f.Check, " rights")
		fmt.Fprint(w, finding(f, cli.LookOf(w)))
	}
	fmt.Fprintf(w, "%s, %s\n", countOf(counts[diagnosis.Error], "error"), countOf(counts[diagnosis.Warning], "warning"))
	if idle {
		fmt.Fprintln(w, needHint)
	}
}

const needHint = "--need plain, or plain,fair and so on, leaves out what this user has no need of"

func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// checkColumn is the column of a finding's text.
const checkColumn = 26

// finding returns a finding in lines that fit a terminal. Its command stays on one line.
func finding(f *diagnosis.Finding, look cli.Look) string {
	text := f.Found
	if f.Advice != "" {
		text += ". " + f.Advice
	}
	head := fmt.Sprintf("%-8s %-16s ", f.Level, f.Check)
	lines := cli.Wrap(text, cli.Columns-1-checkColumn) // some terminals wrap a full line
	var b strings.Builder
	b.WriteString(look.Paint(colourOf(f.Level), head[:8]) + head[8:] + lines[0] + "\n")
	for _, line := range lines[1:] {
		b.WriteString(strings.Repeat(" ", checkColumn) + line + "\n")
	}
	if f.Command != "" {
		b.WriteString("    " + sanitize.Text(f.Command) + "\n")
	}
	return b.String()
}

func colourOf(l diagnosis.Level) cli.Colour {
	switch l {
	case diagnosis.OK:
		return cli.Green
	case diagnosis.Warning:
		return cli.Yellow
	case diagnosis.Error:
		return cli.Red
	case diagnosis.Unknown:
	}
	return cli.Dim
}
