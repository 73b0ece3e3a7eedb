//go:build !unix

package redistest

import "errors"

var errNoSignals = errors.New("this system cannot freeze a process")

func (*process) pause() error  { return errNoSignals }
func (*process) resume() error { return errNoSignals }
