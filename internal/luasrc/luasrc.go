// Package luasrc contains the Lua scripts that change locks, and fills calls to them. The comment at the top of a file
// is the script's contract; a test compares it with the code. docs/protocol.md lists KEYS and ARGV. The line "-- Uses:"
// in a header names the functions in shared/ that the file calls. The scripts run on Redis 6.0 or later, Valkey and
// package embedded, so they never convert numbers to strings, do not rely on the order of hash fields, unpack at most a
// thousand values, and use only the libraries string and math and no global variables. Each script has at least one
// key, because some servers reject scripts without keys. Functions in shared/ read neither KEYS nor ARGV. A change to a
// script's arguments also changes its method here and docs/protocol.md.
package luasrc

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/redlatch/redlatch/transport"
)

// files has the scripts and, in shared/, the fragments: functions used by several scripts.
//
//go:embed *.lua shared/*.lua
var files embed.FS

// undeclared makes Dragonfly accept keys that are not among KEYS. Other servers take it for a comment.
// It must be the first line.
const undeclared = "--!df flags=allow-undeclared-keys\n"

// load returns the script of a file, preceded by the given text and the file's fragments.
func load(name string, before ...string) *transport.Script {
	joined := map[string]bool{}
	text := strings.Join(before, "") + join(files, name+".lua", joined)
	if joined["hold_key"] {
		text = undeclared + text
	}
	return transport.NewScript(name, text)
}

// guard precedes scripts that publish, or whose release will. If a call ends with the publish
// command, the channel and engine.GuardArg, and the user may not publish there, the script fails
// before it changes anything. Before Redis 7, and without ACL checks in scripts, the script runs.
const guard = `if ARGV[#ARGV] == 'guard' and redis.acl_check_cmd then
    local publish, channel = ARGV[#ARGV - 2], ARGV[#ARGV - 1]
    local known, may = pcall(redis.acl_check_cmd, publish, channel, '')
    local refused = known and not may and redis.pcall(publish, channel, '')
    if type(refused) == 'table' and refused.err then
        return redis.error_reply('NOPERM a release could not notify waiters: ' .. refused.err)
    end
end
`

// join returns a file's text preceded by all its fragments, each included once. It panics if a file does not exist.
func join(files fs.FS, file string, joined map[string]bool) string {
	text, err := fs.ReadFile(files, file)
	if err != nil {
		panic(fmt.Sprintf("luasrc: %v", err))
	}
	var all strings.Builder
	for _, fragment := range fragments(string(text)) {
		if !joined[fragment] {
			joined[fragment] = true
			all.WriteString(join(files, path.Join("shared", fragment+".lua"), joined))
		}
	}
	all.Write(text)
	return all.String()
}

// fragments returns the names on the line "-- Uses:".
func fragments(text string) []string {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "--") {
			break
		}
		if names, found := strings.CutPrefix(line, "-- Uses:"); found {
			return strings.Fields(strings.ReplaceAll(names, ",", " "))
		}
	}
	return nil
}
