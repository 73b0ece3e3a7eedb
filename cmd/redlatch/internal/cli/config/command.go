package config

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

const (
	// commandTime limits a command. Its children may keep its output open for commandGrace longer.
	commandTime, commandGrace = 10 * time.Second, time.Second
	maxOutput                 = 64 << 10
)

// Command is a program and its arguments. No shell interprets them.
type Command []string

// UnmarshalYAML rejects a string, which would need a shell to split it.
func (c *Command) UnmarshalYAML(n *yaml.Node) error {
	var words []string
	if n.Kind != yaml.SequenceNode || n.Decode(&words) != nil || len(words) == 0 || words[0] == "" {
		return fmt.Errorf("line %d: password-command must be a list, such as [pass, show, redis/prod]", n.Line)
	}
	*c = words
	return nil
}

// Password returns the output of a command without its last newline. The command has no standard input, so it cannot
// consume the input of a script. Errors quote its standard error, but never its output.
// It runs in dir, in its own process group, which is killed when ctx ends or after 10 seconds.
func (c Command) Password(ctx context.Context, dir string) (string, error) {
	return c.password(ctx, dir, commandTime)
}

func (c Command) password(ctx context.Context, dir string, limit time.Duration) (string, error) {
	started := time.Now()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var out, errs bounded
	cmd := exec.CommandContext(ctx, c[0], c[1:]...) //nolint:gosec // the user's own configuration
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, &out, &errs, commandGrace
	endWithChildren(cmd)
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) { // it succeeded, and left a daemon such as an agent
		err = nil
	}
	password := strings.TrimSuffix(strings.TrimSuffix(string(out.text), "\n"), "\r")
	switch {
	case err != nil && ctx.Err() != nil:
		err = fmt.Errorf("not finished after %v", time.Since(started).Round(time.Millisecond))
	case err != nil:
	case out.full:
		err = fmt.Errorf("printed more than %d bytes", maxOutput)
	case password == "":
		err = errors.New("its output is empty")
	case strings.Contains(password, "\n"):
		err = errors.New("printed more than one line")
	default:
		return password, nil
	}
	err = fmt.Errorf("password-command %s: %w", sanitize.Word(c[0]), err)
	if said := strings.TrimSpace(string(errs.text)); said != "" {
		err = fmt.Errorf("%w: %s", err, sanitize.Line(said))
	}
	return "", err
}

// bounded keeps the first bytes written to it.
type bounded struct {
	text []byte
	full bool
}

// Write never fails, because a closed pipe would stop the command.
func (b *bounded) Write(p []byte) (int, error) {
	keep := min(len(p), maxOutput-len(b.text))
	b.full = b.full || keep < len(p)
	b.text = append(b.text, p[:keep]...)
	return len(p), nil
}
