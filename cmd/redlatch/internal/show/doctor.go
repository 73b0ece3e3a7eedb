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

const doctorHelp = `Examines a server: can it serve locks, now and after failures? Each check
prints one line: ok, warning, error, or unknown if the server does not let this
user check. The line says what to do, followed by the commands to send.

Checks: the kind of server; whether a cluster serves all slots and is migrating
any; scripts, a plain lock, a fair lock, a message; which kind of pub/sub
Redisson's AUTO chooses; this user's rights for names that begin with --prefix;
detection of dead waiters; eviction, persistence, replicas, keepalive; clock
and latency.

Rights are checked per need, as listed in docs/operations.md. Needs marked with
* are checked only if --need includes them:

  plain      plain locks             doubt      lost replies
  braces     names with own braces   replicas   WithReplicaSync
  fair       fair locks              labels     WithLabel
  tokens     fencing tokens *        names      WithClientName
  read-write read/write locks *      owners     WithOwner, Resume, UnlockAs
  latches    count-down latches *    inspect    admin.Inspect, in a program
  semaphores semaphores *            onlooker   redlatch list, status, watch
  clocks     clock differences       operator   redlatch unlock, evict
  listeners  dead waiters            viewer     a user for admin.Inspect only *

Missing rights are errors for plain locks and warnings otherwise. With --need,
doctor checks only these needs, and missing rights are errors. Needs of
programs include plain.

doctor checks rights by sending each command in a form that changes nothing. It
lists the commands it cannot try. It writes only its own lock below --prefix,
which has a time to live and is removed afterwards.

In a cluster, doctor examines each master. If results differ, it shows the
worst finding and its address.

Exit codes:
  0  no errors (with --strict: no errors or warnings)
  1  warnings, with --strict
  2  errors, the server could not be examined, or the command line is invalid`

type report struct {
	Server   string              `json:"server"`
	Findings []diagnosis.Finding `json:"findings"`
	Worst    diagnosis.Level     `json:"worst"`
}

// NewDoctor returns the command doctor.
func NewDoctor(g *cli.Globals) *cobra.Command {
	var prefix string
	var needs []string
	var strict bool
	var format cli.Output
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine a server: can it serve locks?",
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
				return cli.Usagef("--prefix %q: ACL SETUSER rules cannot contain white space, quotes or control characters", prefix)
			}
			d, err := examined(cmd, g, prefix, needs)
			if err != nil {
				return &cli.ExitError{Code: codeErrors, Err: err}
			}
			if err := format.Print(cmd, d, d.print); err != nil {
				return err
			}
			return d.exit(strict)
		},
	}
	f := cmd.Flags()
	f.StringVar(&prefix, "prefix", "", "prefix of the lock names")
	f.StringSliceVar(&needs, needFlag, nil, "needs of the user, such as fair,listeners (default: all)")
	f.BoolVar(&strict, "strict", false, "exit with 1 if there are warnings")
	format.Register(cmd, "")
	cli.CompleteValues(cmd, needFlag, diagnosis.Needs()...)
	return cmd
}

func examined(cmd *cobra.Command, g *cli.Globals, prefix string, needs []string) (*report, error) {
	srv, err := g.Server(cmd.Context())
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
		return cli.Usagef("--need must be a comma-separated list of %s", strings.Join(known, ", "))
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
	idle := false
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

const needHint = "--need plain, or plain,fair and so on, checks only what this user needs"

func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

const checkColumn = 26

func finding(f *diagnosis.Finding, look cli.Look) string {
	text := f.Found
	if f.Advice != "" {
		text += ". " + f.Advice
	}
	head := fmt.Sprintf("%-8s %-16s ", f.Level, f.Check)
	lines := cli.Wrap(text, cli.Columns-1-checkColumn) // some terminals wrap lines that fill the width
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
