package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/redlatch/redlatch/transport"
)

// Lacks reports whether err means that the user lacks a right, and logs the consequence once for each right.
func (e *Engine) Lacks(right, worse string, err error) bool {
	if !transport.IsCode(err, "NOPERM") {
		return false
	}
	if _, noted := e.lacked.LoadOrStore(right, true); !noted {
		e.Logger.Warn("redlatch: "+worse, "right", right, "error", err)
	}
	return true
}

// GuardArg is the last argument of a guarded call, whose script fails before it changes anything if the user may not
// publish. See package luasrc.
const (
	GuardArg = "guard"
	guarded  = "NOPERM a release could not notify waiters"
)

// MayPublish reports whether a guarded call for this kind has succeeded. If so, further calls don't need a guard.
func (e *Engine) MayPublish(kind string) bool {
	kinds := e.published.Load()
	return kinds != nil && (*kinds)[kind]
}

// GuardPublish makes the call's script, if any, fail if the user may not publish to the channel. If it returns true,
// the call's error must be passed to [Engine.Guarded].
func (e *Engine) GuardPublish(c *transport.Call, channel string) bool {
	if c.Script == nil {
		return false
	}
	c.Args = append(c.Args, e.publish, channel, GuardArg)
	return true
}

// Guarded records the success of a guarded call, or explains its error.
func (e *Engine) Guarded(kind, channel string, err error) error {
	if err == nil {
		for {
			old, kinds := e.published.Load(), map[string]bool{kind: true}
			if old != nil {
				maps.Copy(kinds, *old)
			}
			if e.published.CompareAndSwap(old, &kinds) {
				return nil
			}
		}
	}
	if isGuarded(err) {
		return e.lacksPublish(channel, err)
	}
	return err
}

// RunGuarded makes one attempt at a call whose script publishes. It guards the call if necessary.
func (e *Engine) RunGuarded(ctx context.Context, kind, channel string, fill func(*transport.Call)) (any, error) {
	a := e.Attempt()
	fill(&a.Call)
	guards := !e.MayPublish(kind) && e.GuardPublish(&a.Call, channel)
	reply, err := a.Run(ctx, nil)
	if guards {
		err = e.Guarded(kind, channel, err)
	}
	return reply, err
}

func isGuarded(err error) bool {
	var se *transport.ServerError
	return errors.As(err, &se) && strings.HasPrefix(se.Text, guarded)
}

// DeniedPublish reports whether err means that a script may not publish. Before version 7.2, Redis does not name the
// denied command.
func (e *Engine) DeniedPublish(err error) bool {
	if err == nil {
		return false
	}
	var se *transport.ServerError
	if !errors.As(err, &se) {
		return false
	}
	inScript := strings.Contains(se.Text, "The user executing the script can't ") || strings.Contains(se.Text, "ACL failure in script: ")
	return inScript && (strings.Contains(se.Text, "channel") || e.deniedCommand(se.Text))
}

func (e *Engine) deniedCommand(text string) bool {
	command := strings.ToLower(e.Transport.PublishCommand())
	return strings.Contains(text, "can't run this command") || strings.Contains(text, "'"+command+"'")
}

// NotNotified returns the error for a release whose message could not be published.
func (e *Engine) NotNotified(channel string, err error) error {
	if se := (*transport.ServerError)(nil); errors.As(err, &se) {
		err = se
	}
	return fmt.Errorf("%w: %w", ErrNotNotified, e.lacksPublish(channel, err))
}

func (e *Engine) lacksPublish(channel string, err error) error {
	right := "&" + channel + "*"
	if e.deniedCommand(err.Error()) {
		right = "+" + strings.ToLower(e.Transport.PublishCommand())
	}
	return fmt.Errorf("the user lacks %s: %w", right, err)
}
