package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// Checked makes a command explain wrong arguments.
func Checked(cmd *cobra.Command) *cobra.Command {
	if check := cmd.Args; check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error {
			err := check(c, args)
			var said *ExitError
			if err == nil || errors.As(err, &said) {
				return err
			}
			return wrongUse(c, args)
		}
	}
	return cmd
}

// refuseTheUnknown makes cobra's own commands reject unknown arguments.
func refuseTheUnknown(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				_, _, err := root.Find(args)
				return err
			}
		case "completion":
			cmd.Use = "completion bash|fish|powershell|zsh"
			cmd.Args = func(c *cobra.Command, args []string) error {
				if len(args) == 0 {
					return nil // RunE shows the help
				}
				return Usagef("unknown shell %s. Usage: redlatch %s", sanitize.Word(args[0]), c.Use)
			}
			cmd.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
			for _, shell := range cmd.Commands() {
				Checked(shell)
			}
		}
	}
}

func wrongUse(cmd *cobra.Command, args []string) error {
	usage := cmd.Use
	if cmd.HasParent() {
		usage = cmd.Parent().CommandPath() + " " + usage
	}
	return fmt.Errorf("%s. Usage: %s; see `%s --help`", wrongArgs(cmd.Use, args), usage, cmd.CommandPath())
}

func wrongArgs(use string, args []string) string {
	var wanted, optional []string
	for _, word := range strings.Fields(use)[1:] {
		switch {
		case strings.HasPrefix(word, "-"):
		case strings.HasPrefix(word, "["):
			optional = append(optional, word)
		default:
			wanted = append(wanted, strings.TrimSuffix(word, "..."))
		}
	}
	switch missing := wanted[min(len(args), len(wanted)):]; len(missing) {
	case 0:
	case 1:
		return missing[0] + " is missing"
	default:
		return strings.Join(missing, " and ") + " are missing"
	}
	extra := ""
	if most := len(wanted) + len(optional); len(args) > most {
		extra = ": " + sanitize.Word(args[most])
	}
	said := "too many arguments" + extra
	if strings.Contains(use, "PATTERN") {
		said += " (a pattern in quotes is not expanded by the shell)"
	}
	return said
}

// WrongFlag adds a hint to an error about a flag.
func WrongFlag(cmd *cobra.Command, err error) error {
	what, why, _ := strings.Cut(err.Error(), ": time: ")
	flag, parse, _ := strings.Cut(err.Error(), ": strconv.")
	switch {
	case strings.HasPrefix(parse, "ParseBool"):
		return fmt.Errorf("%s: must be true or false", flag)
	case strings.HasSuffix(parse, "value out of range"):
		return fmt.Errorf("%s: out of range", flag)
	case parse != "":
		return fmt.Errorf("%s: must be an integer", flag)
	case strings.HasPrefix(what, "unknown "):
		return fmt.Errorf("%w. `%s --help` lists the flags", err, cmd.CommandPath())
	case strings.Contains(why, " duration "):
		return fmt.Errorf("%s: must have a unit, such as 10s, 500ms or 1h30m", what)
	}
	return err
}

func wrongCommand(root *cobra.Command, err error) error {
	var name string
	if _, scanned := fmt.Sscanf(err.Error(), "unknown command %q for", &name); scanned != nil {
		return err
	}
	like := "."
	if name == "version" {
		like = "; did you mean --version?"
	}
	if names := root.SuggestionsFor(name); len(names) > 0 {
		like = "; did you mean " + strings.Join(names, " or ") + "?"
	}
	return fmt.Errorf("unknown command %s%s `redlatch --help` lists the commands", sanitize.Word(name), like)
}
