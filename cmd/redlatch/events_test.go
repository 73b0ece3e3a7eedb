package main

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/stretchr/testify/require"
)

var interrupt = os.Interrupt

// codeInterrupted is the exit code of whoever interrupt has ended.
const codeInterrupted = 130

// toEvent returns the lines up to the first that tells of an event.
func toEvent(p *program, event string) (lines []string) {
	p.t.Helper()
	for {
		line := p.line()
		lines = append(lines, line)
		if strings.Contains(line, event) {
			return lines
		}
	}
}

// handedOver reads what is told of a lock that goes from one to another: it has
// passed, or a look has found it free in between. It returns the last line.
func handedOver(p *program) string {
	p.t.Helper()
	for {
		if line := p.line(); strings.Contains(line, "passed") || strings.Contains(line, "taken") {
			return line
		}
	}
}

// events reads what programs are told until the event given.
func events(p *program, last string) (all []map[string]any) {
	p.t.Helper()
	for _, line := range toEvent(p, `"event":"`+last+`"`) {
		var e map[string]any
		require.NoError(p.t, json.Unmarshal([]byte(line), &e))
		all = append(all, e)
	}
	return all
}
