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

// Names reads the lock names and owners among a command's arguments.
type Names struct {
	Base64 bool
}

// Register adds the flag --base64.
func (n *Names) Register(cmd *cobra.Command, what string) {
	cmd.Flags().BoolVar(&n.Base64, "base64", false, what+" in base64, as in --json for names that are not valid UTF-8")
}

// Read decodes args. Its errors have [CodeUsage].
func (n *Names) Read(args ...string) ([]string, error) {
	if !n.Base64 {
		return args, nil
	}
	names := make([]string, len(args))
	for i, arg := range args {
		name, err := base64.StdEncoding.DecodeString(arg)
		if err != nil {
			return nil, Usagef("--base64: %s is not valid base64", sanitize.Word(arg))
		}
		names[i] = string(name)
	}
	return names, nil
}

// CompleteValues makes shells complete a flag's values; in a list, only the first.
func CompleteValues(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// CompleteFiles makes shells complete file names for flags.
func CompleteFiles(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
	}
}

// Confirm prompts for an answer. Any answer other than yes counts as no.
func Confirm(in io.Reader, out io.Writer, question string) bool {
	fmt.Fprint(out, Fit(out, question+" [y/N] "))
	answer, _ := bufio.NewReader(in).ReadString('\n') // an end of input is no
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// Print prints a command's output, as JSON or with text.
func Print(cmd *cobra.Command, asJSON bool, what any, text func(io.Writer)) error {
	if asJSON {
		return PrintJSON(cmd, what)
	}
	text(cmd.OutOrStdout())
	return nil
}

// PrintJSON prints a command's JSON output.
func PrintJSON(cmd *cobra.Command, what any) error {
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false) // command lines in it contain &
	return enc.Encode(what)
}
