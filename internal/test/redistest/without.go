package redistest

import (
	"strings"
	"testing"
)

// StartWithout starts a server that keeps commands to itself, as managed services do, and
// returns it with the URL of a user. The server does not know the commands. Subcommands,
// such as client|kill, are denied to the user, for they cannot be made unknown, and so is
// client, which this package sends itself.
func StartWithout(tb testing.TB, commands []string) (s *Server, user string) {
	tb.Helper()
	var args []string
	const name = "limited"
	rights := []string{"--user", name, "on", ">" + Password, "~*", "&*", "+@all"}
	for _, command := range commands {
		if strings.Contains(command, "|") || command == "client" {
			rights = append(rights, "-"+command)
		} else {
			args = append(args, "--rename-command", command, "")
		}
	}
	s = Start(tb, WithArgs(append(args, rights...)...))
	return s, s.UserURL(name)
}
