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

// assignments are lines for eval: each NAME=value of env is set and exported, and the other
// variables of a hold are removed.
func assignments(env []string) string {
	var b strings.Builder
	b.WriteString("unset " + strings.Join(variables, " ") + ";\n")
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		fmt.Fprintf(&b, "%s=%s; export %s;\n", name, sanitize.Quote(value), name)
	}
	return b.String()
}

// failure is a line for eval that fails with the code. Without it eval would succeed: it is not
// told how the command ended.
func failure(code int) string {
	return assignments(nil) + fmt.Sprintf("(exit %d)\n", code)
}

// asksForShell reports whether an argument is the flag -s, however it is written, or -s with
// something behind it.
func asksForShell(arg string) bool {
	value, is := strings.CutPrefix(arg, "--shell")
	if !is {
		value, is = strings.CutPrefix(arg, "-s")
	}
	on, err := strconv.ParseBool(strings.TrimPrefix(value, "="))
	return is && (on || err != nil)
}

// refuse returns err with an exit code, and fails the eval of -s.
func refuse(cmd *cobra.Command, err error) error {
	var said *cli.ExitError
	if !errors.As(err, &said) {
		said = &cli.ExitError{Code: cli.CodeRunFailed, Err: err}
	}
	if slices.ContainsFunc(os.Args, asksForShell) { // the flags may not have been parsed
		fmt.Fprint(cmd.OutOrStdout(), failure(said.Code))
	}
	return said
}
