package engine

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/redlatch/redlatch/transport"
)

// LabelKey returns the key of a client's label, which names the client's program. The key has a TTL. No decision
// depends on the label.
func LabelKey(client uuid.UUID) string { return "redlatch:label:" + client.String() }

// MaxLabel is the maximum length of a label, in bytes.
const MaxLabel = 200

// CheckLabel returns why text is not a valid label, or nil if it is.
func CheckLabel(text string) error {
	switch {
	case len(text) > MaxLabel:
		return fmt.Errorf("label of %d bytes: must be at most %d", len(text), MaxLabel)
	case !utf8.ValidString(text):
		return fmt.Errorf("the label %q is not valid UTF-8", text)
	case strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("the label %q must be printable on one line", text)
	}
	return nil
}

// mostNamed is the maximum length of the program and of the host in a default label, in bytes.
const mostNamed = 64

// LabelEnv is the environment variable that sets the default label. If it is set but empty, there
// is none.
const LabelEnv = "REDLATCH_LABEL"

// DefaultLabel returns the value of LabelEnv if set, or else the base name of the program in argv, the host and this
// process's ID.
func DefaultLabel(argv []string) string {
	if text, set := os.LookupEnv(LabelEnv); set {
		return printable(text, MaxLabel)
	}
	program := "unknown"
	if len(argv) > 0 {
		program = strings.TrimSuffix(filepath.Base(argv[0]), ".exe")
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s@%s pid %d", printable(program, mostNamed), printable(host, mostNamed), os.Getpid())
}

func printable(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}

const (
	labelLife    = 10 * time.Minute       // TTL
	labelPeriod  = time.Minute            // time between two writes
	labelRemoval = 250 * time.Millisecond // at most, for a default label
	labelRetry   = time.Second            // first pause after a failed write, doubled up to labelPeriod
)

// label writes a client's label from the client's first acquisition until it closes: every labelPeriod, after each
// reconnect, and sooner after a failure.
type label struct {
	engine *Engine
	begun  atomic.Bool
	denied atomic.Bool     // the user may not write labels; until one is written
	ctx    context.Context //nolint:containedctx // ends the writing
	stop   context.CancelFunc

	mu      sync.Mutex // guards the fields below
	running bool
	stopped bool
}

// Announce starts writing the client's label, if it has one, to the server. It does not block.
func (e *Engine) Announce() {
	l := &e.label
	if e.Label == "" || l.begun.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.begun.Swap(true) && !l.stopped {
		l.running = e.Go(l.run)
	}
}

func (l *label) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return
	}
	l.stopped = true
	if l.running {
		l.engine.Join() // run calls Leave
	}
	l.stop()
}

func (l *label) run() {
	e, key := l.engine, LabelKey(l.engine.ClientID)
	defer e.Leave()
	var failing time.Duration // last pause after a failure
	for {
		again := e.Reconnected() // before the write, so that no reconnect is missed
		err := l.send(l.ctx, "SET", key, e.Label, "PX", labelLife.Milliseconds())
		if transport.IsCode(err, "OOM") { // extending an existing label does not need memory
			_ = l.send(l.ctx, "PEXPIRE", key, labelLife.Milliseconds())
		}
		pause := labelPeriod
		switch {
		case err == nil && failing > 0:
			l.say(slog.LevelInfo, "redlatch: client label written again", "key", key)
			failing = 0
		case err != nil:
			if failing == 0 && l.ctx.Err() == nil {
				l.say(slog.LevelWarn, "redlatch: cannot write the client's label: its locks cannot be attributed to it",
					"key", key, "error", err)
			}
			failing = min(max(2*failing, labelRetry), labelPeriod)
			pause = failing
		}
		denied := transport.IsCode(err, "NOPERM")
		if denied && e.LabelOptional { // each attempt would be logged in the server's ACL LOG
			pause = math.MaxInt64
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-again:
		case <-l.ctx.Done():
		}
		timer.Stop()
		if l.ctx.Err() != nil {
			if !denied {
				_ = l.remove(key)
			}
			return
		}
	}
}

// remove deletes a key, which otherwise expires. Close does not wait long for a label that the user did not choose.
func (l *label) remove(key string) error {
	ctx := context.Background()
	if l.engine.LabelOptional {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, labelRemoval)
		defer cancel()
	}
	return l.send(ctx, "DEL", key)
}

// say logs only if the user chose the label.
func (l *label) say(level slog.Level, text string, args ...any) {
	if !l.engine.LabelOptional {
		l.engine.Logger.Log(context.Background(), level, text, args...)
	}
}

// send runs one command, even during Shutdown.
func (l *label) send(ctx context.Context, command string, args ...any) error {
	a := l.engine.Attempt()
	a.Call.Command, a.Call.NumKeys = command, 1
	a.Call.Args = append(a.Call.Args, args...)
	_, err := a.run(ctx, l.engine.Command)
	if denied := transport.IsCode(err, "NOPERM"); denied || err == nil {
		l.denied.Store(denied)
	}
	return err
}
