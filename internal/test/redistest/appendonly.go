package redistest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// WithAppendOnly makes the server write each change to its append-only file, as it
// is made and before it is answered. Its data then outlives Kill and Restart, and
// Expiries can be asked. It needs Redis 7 or Valkey.
func WithAppendOnly() Option { return WithArgs("--appendonly", "yes", "--appendfsync", "no") }

// Expiries returns when keys expire by the clock of this machine, to the millisecond: for
// each key the last moment that the server has set, whether the key still exists or not. It
// reads the append-only file, so it also works for a server that is frozen or dead, and
// sends nothing to a running one. Only servers started with WithAppendOnly have that.
//
// A server writes the file before it sends the replies. A change that is missing there was
// not acknowledged to any client.
func (s *Server) Expiries(tb testing.TB) map[string]time.Time {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "appendonlydir", "*.incr.aof"))
	if err == nil && len(files) == 0 {
		err = errors.New("there is none; start the server with WithAppendOnly")
	}
	expiries := map[string]time.Time{}
	for _, name := range files { // in their order: names end in numbers, and nothing rewrites them
		var text []byte
		if text, err = os.ReadFile(name); err == nil {
			err = readExpiries(text, expiries)
		}
		if err != nil {
			break
		}
	}
	if err != nil {
		tb.Fatalf("redistest: append-only file: %v", err)
	}
	return expiries
}

// readExpiries goes through the commands of an append-only file. The last may have
// been cut off.
func readExpiries(text []byte, expiries map[string]time.Time) error {
	for len(text) > 0 {
		args, rest, err := nextCommand(text)
		if err != nil {
			return err
		}
		if args == nil {
			return nil
		}
		text = rest
		key, at, err := expiryIn(args)
		if err != nil {
			return err
		}
		if key != "" {
			expiries[key] = at
		}
	}
	return nil
}

// expiryIn returns the key to which a command gives an expiry, if it does. All that
// set one are written as one of these two, whatever the client sent.
func expiryIn(args []string) (string, time.Time, error) {
	ms := ""
	switch name := strings.ToUpper(args[0]); {
	case name == "PEXPIREAT" && len(args) >= 3:
		ms = args[2]
	case name == "SET":
		for i, a := range args[min(3, len(args)):] {
			if strings.EqualFold(a, "PXAT") && i+4 < len(args) {
				ms = args[i+4]
			}
		}
	}
	if ms == "" {
		return "", time.Time{}, nil
	}
	n, err := strconv.ParseInt(ms, 10, 64)
	return args[1], time.UnixMilli(n), err
}

// nextCommand takes one command off text: an array of bulk strings. It returns none
// if it does not end.
func nextCommand(text []byte) (args []string, rest []byte, err error) {
	n, rest, ok, err := header(text, '*')
	for ; ok && n > 0; n-- {
		var size int
		size, rest, ok, err = header(rest, '$')
		if !ok || len(rest) < size+2 {
			return nil, nil, err
		}
		args, rest = append(args, string(rest[:size])), rest[size+2:]
	}
	if !ok {
		return nil, nil, err
	}
	if len(args) == 0 {
		return nil, nil, errors.New("an empty command")
	}
	return args, rest, nil
}

// header reads a line that is kind and a number. It is not ok when it does not end.
func header(text []byte, kind byte) (n int, rest []byte, ok bool, err error) {
	line, rest, ok := bytes.Cut(text, []byte("\r\n"))
	if !ok {
		return 0, nil, false, nil
	}
	if len(line) < 2 || line[0] != kind {
		return 0, nil, false, fmt.Errorf("%.20q where %q and a number belong", line, kind)
	}
	n, err = strconv.Atoi(string(line[1:]))
	return n, rest, err == nil && n >= 0, err
}
