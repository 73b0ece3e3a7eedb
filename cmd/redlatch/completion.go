package main

import (
	"os"
	"slices"

	"github.com/spf13/cobra"
)

// What a shell offers is what can stand there: files for the few flags that name one,
// and for the command of run; the values of flags that have few; and nothing for names,
// times and numbers, which nobody but the user knows.

// offersNoFiles makes a shell offer no files unless a flag or a command says so.
func offersNoFiles(root *cobra.Command) {
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
}

// completes makes a shell offer values for a flag that was added to cmd. Those that
// have commas between them are offered for the first.
func completes(cmd *cobra.Command, flag string, values ...string) {
	// The flag is there, so this cannot fail.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// completesFiles makes a shell offer files for flags that were added to cmd.
func completesFiles(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
	}
}

// completeRun offers what may stand after the flags of run: a name, the dashes, and
// then the command and its arguments, as the shell has them.
func completeRun(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	// Cobra parses what was typed with dashes added, and does not tell afterwards whether
	// there were any.
	dashes := slices.Contains(os.Args, "--")
	switch {
	case dashes:
		return nil, cobra.ShellCompDirectiveDefault
	case len(args) == 1:
		return []cobra.Completion{"--"}, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}
