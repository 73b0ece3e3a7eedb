package cli

import (
	"github.com/spf13/cobra"
)

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
