package connect

import (
	"regexp"
	"slices"
	"strings"
)

// Where a script failed is nothing that its user can do anything about. Redis 6 puts it
// before what was wrong, and servers since then behind.
var (
	scriptBefore = regexp.MustCompile(`^ERR Error (running|compiling) script \([^)]*\): (@?user_script: ?\d+: )*-?`)
	scriptBehind = regexp.MustCompile(` script: [0-9a-f]{40}, on @user_script:\d+\.?$`)
)

// tidy returns what a server has answered without where in a script that was.
func tidy(text string) string {
	text = scriptBefore.ReplaceAllString(text, "")
	return strings.TrimRight(scriptBehind.ReplaceAllString(text, ""), ". ")
}

// deniedInScript are the beginnings of errors of commands that are denied within a script.
// Some of them do not name the command.
var deniedInScript = []string{"ERR The user executing the script can't ", "The user executing the script can't ", "ERR ACL failure in script: "}

// deniedCommand finds the command that is denied.
var deniedCommand = regexp.MustCompile(`to run the '([^']+)' command`)

// isDenial reports whether a server's answer is that the user lacks a right.
func isDenial(text string) bool {
	begins := func(with string) bool { return strings.HasPrefix(text, with) }
	return begins("NOPERM") || slices.ContainsFunc(deniedInScript, begins)
}

// lacked names the rights that the user lacks, as far as they or the server's error name
// them.
func lacked(text string, rights []string) string {
	m := deniedCommand.FindStringSubmatch(text)
	switch {
	case len(rights) > 0:
		return "The user lacks " + strings.Join(rights, " ") + ". "
	case m != nil:
		return "The user lacks +" + m[1] + ". "
	case strings.Contains(text, " key"), strings.Contains(text, " channel"):
		return "The user may not use this name (see doctor --prefix). "
	}
	return ""
}

// Denied reports whether err is the server's answer that the user lacks a right.
func Denied(err error) bool {
	text, refused := refusal(err)
	return refused && isDenial(text)
}

// Remedy says what to do when err is the server's refusal, "" when that is not known, and when it is
// none. Rights are those that are known to be missing, in the words of ACL SETUSER; without any it
// names what the server has named.
func Remedy(err error, rights ...string) string {
	text, refused := refusal(err)
	switch {
	case !refused:
		return ""
	case isDenial(text):
		return remedyOfDenial(text, rights)
	}
	return remedy(text)
}

func remedyOfDenial(text string, rights []string) string {
	return lacked(text, rights) + "`redlatch doctor` shows which rights are missing, docs/operations.md what they are for."
}
