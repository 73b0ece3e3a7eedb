package luasrc

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/redlatch/redlatch/transport"
)

// files are the scripts, and in the folder shared the functions that several of them
// use: the fragments, one in each file.
//
//go:embed *.lua shared/*.lua
var files embed.FS

// undeclared is a comment to all servers but Dragonfly, which otherwise refuses keys that are
// not among KEYS. It must be the first line.
const undeclared = "--!df flags=allow-undeclared-keys\n"

// load returns the script of a file: its text behind the fragments that it uses.
func load(name string) *transport.Script { return loadAfter("", name) }

// guarded is load with the guard.
func guarded(name string) *transport.Script { return loadAfter(guard, name) }

// loadAfter is load with a text before the script's.
func loadAfter(before, name string) *transport.Script {
	joined := map[string]bool{}
	text := before + join(files, name+".lua", joined)
	if joined["hold_key"] {
		text = undeclared + text
	}
	return transport.NewScript(name, text)
}

// guard precedes scripts that publish, or whose release will. If the call has three more arguments,
// the publish command, the channel and engine.GuardArg, and the user may not publish to the channel,
// the script fails before it changes anything. Redis before version 7 cannot tell, nor can a server
// that does not know the command: the script runs.
const guard = `if ARGV[#ARGV] == 'guard' and redis.acl_check_cmd then
    local publish, channel = ARGV[#ARGV - 2], ARGV[#ARGV - 1]
    local known, may = pcall(redis.acl_check_cmd, publish, channel, '')
    local refused = known and not may and redis.pcall(publish, channel, '')
    if type(refused) == 'table' and refused.err then
        return redis.error_reply('NOPERM a release could not notify waiters: ' .. refused.err)
    end
end
`

// join returns a file's text behind the fragments that it and they use, each once. A
// fragment that does not exist is a panic.
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

// fragments returns what the line "-- Uses:" of a file's header names.
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
