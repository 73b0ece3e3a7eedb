package diagnosis

import "fmt"

// Level says how bad a finding is.
type Level int

// The levels, from good to bad.
const (
	// OK needs nothing.
	OK Level = iota
	// Unknown could not be found out.
	Unknown
	// Warning will cost something some day.
	Warning
	// Error keeps locks from working.
	Error
)

// String returns the level in a word.
func (l Level) String() string {
	switch l {
	case OK:
		return "ok"
	case Unknown:
		return "unknown"
	case Warning:
		return "warning"
	case Error:
	}
	return "error"
}

// MarshalText is part of encoding.TextMarshaler.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Finding is what a check has found.
type Finding struct {
	// Check is what was looked at, in a word.
	Check string `json:"check"`
	// Level is how bad it is.
	Level Level `json:"level"`
	// Found is what was found.
	Found string `json:"found"`
	// Advice is what to do, empty when there is nothing to be done.
	Advice string `json:"advice,omitempty"`
	// Command is what to send to the server, as it is.
	Command string `json:"command,omitempty"`
}

// Worst returns the worst level of findings, OK for none.
func Worst(findings []Finding) Level {
	worst := OK
	for i := range findings {
		worst = max(worst, findings[i].Level)
	}
	return worst
}

func good(format string, args ...any) Finding {
	return Finding{Level: OK, Found: fmt.Sprintf(format, args...)}
}

func unknown(format string, args ...any) Finding {
	return Finding{Level: Unknown, Found: fmt.Sprintf(format, args...)}
}

func warning(advice, format string, args ...any) Finding {
	return Finding{Level: Warning, Advice: advice, Found: fmt.Sprintf(format, args...)}
}

func bad(advice, format string, args ...any) Finding {
	return Finding{Level: Error, Advice: advice, Found: fmt.Sprintf(format, args...)}
}
