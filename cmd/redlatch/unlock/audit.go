package unlock

import (
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/repair"
)

// How it went.
const (
	outcomeTaken = "taken"
	outcomeFree  = "free"
)

// audit is the record of a lock that was taken from its holder.
type audit struct {
	Time   time.Time `json:"time"`
	By     string    `json:"by"`
	Host   string    `json:"host"`
	Action string    `json:"action"`
	Server string    `json:"server"`
	repair.Forced
	EvenIfAlive bool   `json:"even_if_alive"`
	Reason      string `json:"reason"`
	// Outcome is "taken", "free" when the lock was free by then, or what went wrong.
	Outcome string `json:"outcome"`
}

// String is the line for people.
func (a *audit) String() string {
	what := "took " + subject(&a.Forced)
	if a.Outcome != outcomeTaken {
		what = fmt.Sprintf("tried to take %s (%s)", subject(&a.Forced), a.Outcome)
	}
	reason := "no reason given"
	if a.Reason != "" {
		reason = fmt.Sprintf("reason %q", a.Reason)
	}
	return fmt.Sprintf("audit: %s %s@%s %s on %s from %s; %s",
		a.Time.Format(time.RFC3339), a.By, a.Host, what, a.Server, describe(&a.Forced), reason)
}

// auditLog is a file that audits are appended to, nil for none.
type auditLog struct{ file *os.File }

// openAudit opens the file, before anything is done that belongs into it.
func openAudit(path string) (*auditLog, error) {
	if path == "" {
		return &auditLog{}, nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // the file that the user names
	if err != nil {
		return nil, fmt.Errorf("--audit-file: %w; nothing was done", err)
	}
	return &auditLog{file: f}, nil
}

// write tells standard error, and the file in one line of JSON.
func (l *auditLog) write(a *audit) error {
	cli.Messagef(os.Stderr, "%s", a)
	if l.file == nil {
		return nil
	}
	line, err := json.Marshal(a)
	if err == nil {
		_, err = l.file.Write(append(line, '\n')) // at once: others may append as well
	}
	if err != nil {
		return fmt.Errorf("the audit file was not written: %w", err)
	}
	return nil
}

func (l *auditLog) close() {
	if l.file != nil {
		_ = l.file.Close() // each line was written when it was made
	}
}

// whoami returns the user of this program, and the machine.
func whoami() (name, host string) {
	name = fmt.Sprint("uid ", os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if sudo := os.Getenv("SUDO_USER"); sudo != "" && sudo != name {
		name += " (sudo by " + strings.ToValidUTF8(sudo, "?") + ")"
	}
	if host, _ = os.Hostname(); host == "" {
		host = "unknown"
	}
	return name, host
}
