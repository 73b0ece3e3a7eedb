package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/run/runner"
	"github.com/redlatch/redlatch/internal/tool/holding"
	"github.com/redlatch/redlatch/internal/tool/output"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/internal/tool/sdnotify"
)

const (
	// lossLimit is how long the command of --on-lost-exec may take, and lossOutput for how long
	// after that its outputs may stay open.
	lossLimit  = 10 * time.Second
	lossOutput = time.Second
	// envLoss has the reason of a loss.
	envLoss = "REDLATCH_LOSS"
)

// onLoss reports a loss at the moment at which the hold ends, while the command is being ended:
// that does not wait for the report. It returns a function that ends the watching, or waits for
// the report, and says whether there was one.
func (o *runOptions) onLoss(lost context.Context, name string, h *holding.Held) (finish func() (reported bool)) {
	done := make(chan struct{})
	stop := context.AfterFunc(lost, func() {
		defer close(done)
		o.report(name, h, h.Hold.Err(), nil)
	})
	return func() bool {
		if stop() {
			return false
		}
		<-done
		return true
	}
}

// report tells the service manager, and the command of --on-lost-exec, that the lock was lost, by
// how its hold ended and how the unlocking went.
func (o *runOptions) report(name string, h *holding.Held, over, unlocked error) {
	if errors.Is(over, redlatch.ErrMaxHold) {
		return
	}
	why := o.LossOf(over, unlocked)
	status := sdnotify.Status("lost lock " + sanitize.Word(name) + ": " + why)
	if o.onLost == onLostIgnore {
		sdnotify.Send(status)
	} else {
		sdnotify.Send(sdnotify.Stopping, status)
	}
	if o.onLostExec == "" {
		return
	}
	if err := execute(o.onLostExec, append(h.Environment(), envLoss+"="+why)); err != nil {
		output.Messagef(os.Stderr, "warning: --on-lost-exec: %v", err)
	}
}

// execute runs a command line of the shell. What it prints goes to standard error: standard output
// is that of the command under the lock.
func execute(line string, env []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), lossLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, shell[0], append(shell[1:], line)...) //nolint:gosec // what the user asks for
	cmd.Env = runner.Environ(env...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.WaitDelay = lossOutput
	endWithChildren(cmd)
	err := cmd.Run()
	if ctx.Err() != nil {
		return fmt.Errorf("it was killed after %v", lossLimit)
	}
	return err
}
