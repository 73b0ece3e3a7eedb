// Package luasrc contains the Lua scripts that change locks, and functions that build the calls to them. The comment at
// the top of each file is the script's contract, which a test compares with the code. Its line "-- Uses:" names the
// functions in shared/ that the file calls. Functions in shared/ do not read KEYS or ARGV. If you change a script's
// arguments, also change its method here and docs/protocol.md.
//
// The scripts run on Redis 6.2 or later, on Valkey and in package embedded. Therefore they never convert numbers to
// strings, rely on the order of hash fields, unpack more than a thousand values, define global variables, or use any
// library except string and math. Each script has at least one key, because some servers reject scripts without keys.
package luasrc

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/redlatch/redlatch/transport"
)

// files contains the scripts and, in shared/, the fragments, which are functions that several scripts use.
//
//go:embed *.lua shared/*.lua
var files embed.FS

// undeclared makes Dragonfly accept keys that are not listed in KEYS. To other servers it is a comment. It must be the
// first line of the script.
const undeclared = "--!df flags=allow-undeclared-keys\n"

func load(name string, before ...string) *transport.Script {
	joined := map[string]bool{}
	text := strings.Join(before, "") + join(files, name+".lua", joined)
	if joined["hold_key"] {
		text = undeclared + text
	}
	return transport.NewScript(name, text)
}

// guard is the beginning of scripts that publish, or that acquire a lock whose release publishes. If the last arguments
// of a call are the publish command, the channel and engine.GuardArg, and the user may not publish to that channel, the
// script fails before it changes anything. Servers without redis.acl_check_cmd, such as Redis 6, skip this check.
const guard = `if ARGV[#ARGV] == 'guard' and redis.acl_check_cmd then
    local publish, channel = ARGV[#ARGV - 2], ARGV[#ARGV - 1]
    local known, may = pcall(redis.acl_check_cmd, publish, channel, '')
    local refused = known and not may and redis.pcall(publish, channel, '')
    if type(refused) == 'table' and refused.err then
        return redis.error_reply('NOPERM a release could not notify waiters: ' .. refused.err)
    end
end
`

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
