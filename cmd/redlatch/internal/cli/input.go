package cli

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// Names reads the names of locks, and owners, that a command is given: as they are, or in base64,
// which also has those that no argument can be: bytes that are no UTF-8 on some systems, and zeros
// on all.
type Names struct {
	// Base64 says that they are in base64.
	Base64 bool
}

// Register adds the flag.
func (n *Names) Register(cmd *cobra.Command, what string) {
	cmd.Flags().BoolVar(&n.Base64, "base64", false, what+" in base64, as --json has those that are no UTF-8")
}

// Read returns the names that args stand for. An error is an ExitError.
func (n *Names) Read(args ...string) ([]string, error) {
	if !n.Base64 {
		return args, nil
	}
	names := make([]string, len(args))
	for i, arg := range args {
		name, err := base64.StdEncoding.DecodeString(arg)
		if err != nil {
			return nil, Usagef("--base64: %s is not in base64", sanitize.Word(arg))
		}
		names[i] = string(name)
	}
	return names, nil
}

// A shell completes what is possible at the place: files for the few flags that name one,
// and for the command of run; the values of flags that have few; and nothing for names,
// times and numbers, which only the user knows.

// offersNoFiles makes a shell offer no files unless a flag or a command asks for them.
func offersNoFiles(root *cobra.Command) {
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
}

// CompleteValues makes a shell offer values for a flag that was added to cmd. Those that
// have commas between them are offered for the first.
func CompleteValues(cmd *cobra.Command, flag string, values ...string) {
	// The flag is there, so this cannot fail.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// CompleteFiles makes a shell offer files for flags that were added to cmd.
func CompleteFiles(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
	}
}

// Confirm asks a question. Anything but yes is no.
func Confirm(in io.Reader, out io.Writer, question string) bool {
	fmt.Fprint(out, Fit(out, question+" [y/N] "))
	answer, _ := bufio.NewReader(in).ReadString('\n') // an end of input is no
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// PrintJSON prints the JSON output of a command.
func PrintJSON(cmd *cobra.Command, what any) error {
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false) // lines to be copied have & in them
	return enc.Encode(what)
}
