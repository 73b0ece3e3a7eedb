// Package luasrc holds the Lua scripts that change locks, one file each, and fills calls of them.
//
// The comment at the top of a file is the script's contract: keys, arguments, replies, and effects and
// messages, if any; a test compares it with the code. All scripts share one order of KEYS and ARGV, listed in
// docs/protocol.md, which also describes the locks' states and where the scripts differ from Redisson's
// on purpose. A change of a script's arguments touches the script, its method here, and docs/protocol.md.
//
// Functions used by several scripts live in shared/. The line "-- Uses:" in a file's header names the
// functions that the file calls; they precede the script's text. They read neither KEYS nor ARGV.
//
// Every script runs unchanged on Redis from 6.0 on, on Valkey, and on package embedded. Therefore the
// scripts convert texts to numbers, never numbers to texts, do not rely on the order of hash fields,
// unpack at most a thousand values, use only the libraries string and math, and keep no global
// variables. Each has at least one key, as some servers reject scripts without keys, and declares all
// of its keys, except the keys of readers' holds: the caller does not know the other readers. Scripts
// that use those have a flag for Dragonfly.
package luasrc

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/redlatch/redlatch/transport"
)

// files has the scripts, and in shared/ the fragments: functions used by several scripts.
//
//go:embed *.lua shared/*.lua
var files embed.FS

// undeclared makes Dragonfly accept keys that are not among KEYS. Other servers take it for a comment.
// It must be the first line.
const undeclared = "--!df flags=allow-undeclared-keys\n"

// load returns the script of a file: its text behind the given text and the fragments that it uses.
func load(name string, before ...string) *transport.Script {
	joined := map[string]bool{}
	text := strings.Join(before, "") + join(files, name+".lua", joined)
	if joined["hold_key"] {
		text = undeclared + text
	}
	return transport.NewScript(name, text)
}

// guard precedes scripts that publish, or whose release will. If a call ends with the publish command,
// the channel and engine.GuardArg, and the user may not publish to the channel, the script fails before
// it changes anything. Before Redis 7, and on servers without ACL checks in scripts, the script runs.
const guard = `if ARGV[#ARGV] == 'guard' and redis.acl_check_cmd then
    local publish, channel = ARGV[#ARGV - 2], ARGV[#ARGV - 1]
    local known, may = pcall(redis.acl_check_cmd, publish, channel, '')
    local refused = known and not may and redis.pcall(publish, channel, '')
    if type(refused) == 'table' and refused.err then
        return redis.error_reply('NOPERM a release could not notify waiters: ' .. refused.err)
    end
end
`

// join returns a file's text behind the fragments that it and they use, each once. It panics if a
// fragment does not exist.
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

// fragments returns the names on the line "-- Uses:" of a file's header.
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
