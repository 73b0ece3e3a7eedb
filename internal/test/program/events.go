package program

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/stretchr/testify/require"
)

// Interrupt is the signal of Ctrl-C.
var Interrupt = os.Interrupt

// CodeInterrupted is the exit code of a program that Interrupt has ended.
const CodeInterrupted = 130

// ToEvent returns the lines up to the first that tells of an event.
func ToEvent(p *Process, event string) (lines []string) {
	p.t.Helper()
	for {
		line := p.Line()
		lines = append(lines, line)
		if strings.Contains(line, event) {
			return lines
		}
	}
}

// AwaitPassed reads the events of a lock that goes from one owner to another: it has passed,
// or a look has found it free in between. It returns the last line.
func AwaitPassed(p *Process) string {
	p.t.Helper()
	for {
		if line := p.Line(); strings.Contains(line, "passed") || strings.Contains(line, "taken") {
			return line
		}
	}
}

// Events reads the JSON output until the event given.
func Events(p *Process, last string) (all []map[string]any) {
	p.t.Helper()
	for _, line := range ToEvent(p, `"event":"`+last+`"`) {
		var e map[string]any
		require.NoError(p.t, json.Unmarshal([]byte(line), &e))
		all = append(all, e)
	}
	return all
}
