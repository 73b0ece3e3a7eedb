package conn

import (
	"regexp"
	"strings"
)

// Where a script failed is nothing that its user can do anything about. Redis 6 puts it
// before what was wrong, and servers since then behind.
var (
	scriptBefore = regexp.MustCompile(`^ERR Error (running|compiling) script \([^)]*\): (@?user_script: ?\d+: )*`)
	scriptBehind = regexp.MustCompile(` script: [0-9a-f]{40}, on @user_script:\d+\.?$`)
)

// tidy returns what a server has answered without where in a script that was.
func tidy(text string) string {
	text = scriptBefore.ReplaceAllString(text, "")
	return strings.TrimRight(scriptBehind.ReplaceAllString(text, ""), ".")
}

// deniedBySix are the words of Redis 6 for what is denied within a script.
const deniedBySix = "The user executing the script can't "

// deniedCommand finds the command that is denied.
var deniedCommand = regexp.MustCompile(`to run the '([^']+)' command`)

// isDenial reports whether a server's answer is that the user lacks a right.
func isDenial(text string) bool {
	return strings.HasPrefix(text, "NOPERM") || strings.HasPrefix(text, deniedBySix)
}

// lacked names the right that the user lacks, as far as the server tells.
func lacked(text string) string {
	m := deniedCommand.FindStringSubmatch(text)
	switch {
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

// Remedy says what to do when err is the server's answer that the user lacks a right,
// "" when it is none.
func Remedy(err error) string {
	if text, refused := refusal(err); refused && isDenial(text) {
		return remedy(text)
	}
	return ""
}
