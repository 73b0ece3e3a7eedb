package cli

import (
	"encoding/base64"

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
