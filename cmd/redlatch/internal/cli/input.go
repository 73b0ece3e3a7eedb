package cli

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// Names decodes the lock names and owners in a command's arguments.
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

// CompleteValues lets shells complete the values of a flag, and each value of a list.
func CompleteValues(cmd *cobra.Command, flag string, values ...string) {
	isList := cmd.Flag(flag).Value.Type() == "stringSlice"
	_ = cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, word string) (all []cobra.Completion, _ cobra.ShellCompDirective) {
		before := ""
		if isList {
			before = word[:strings.LastIndexByte(word, ',')+1]
		}
		for _, value := range values {
			all = append(all, before+value)
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	})
}

// CompleteFiles lets shells complete file names for flags.
func CompleteFiles(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
	}
}

// Confirm prompts the user for an answer. Any answer other than yes means no.
func Confirm(in io.Reader, out io.Writer, question string) bool {
	fmt.Fprint(out, Fit(out, question+" [y/N] "))
	answer, _ := bufio.NewReader(in).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
