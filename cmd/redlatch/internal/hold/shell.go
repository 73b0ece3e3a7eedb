package hold

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// assignments returns lines for eval that set and export env, and unset the other variables of a
// hold.
func assignments(env []string) string {
	var b strings.Builder
	b.WriteString("unset " + strings.Join(variables, " ") + ";\n")
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		fmt.Fprintf(&b, "%s=%s; export %s;\n", name, sanitize.Quote(value), name)
	}
	return b.String()
}

// failure returns lines for eval that fail with code. Eval ignores how the command ended.
func failure(code int) string {
	return assignments(nil) + fmt.Sprintf("(exit %d)\n", code)
}

// asksForShell reports whether an argument is -s in any spelling, or begins with -s.
func asksForShell(arg string) bool {
	value, is := strings.CutPrefix(arg, "--shell")
	if !is {
		value, is = strings.CutPrefix(arg, "-s")
	}
	on, err := strconv.ParseBool(strings.TrimPrefix(value, "="))
	return is && (on || err != nil)
}

// refuse returns err and makes eval fail with its exit code.
func refuse(cmd *cobra.Command, err error) error {
	code, said := cli.CodeRunFailed, (*cli.ExitError)(nil)
	if errors.As(err, &said) {
		code = said.Code
	}
	if slices.ContainsFunc(os.Args, asksForShell) { // the flags may not be parsed yet
		fmt.Fprint(cmd.OutOrStdout(), failure(code))
	}
	return err
}
