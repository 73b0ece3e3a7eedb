package servers

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

const (
	// readyTimeout bounds the start of a cluster, which takes about six seconds.
	readyTimeout = 90 * time.Second
	// endTimeout bounds its end.
	endTimeout = 10 * time.Second
)

// transcript is what a script prints.
type transcript struct {
	ready chan struct{} // closed when it is

	mu   sync.Mutex // guards what follows
	text bytes.Buffer
	said bool
}

// Write keeps what the script prints, and notes that it is ready.
func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text.Write(p)
	if !t.said && bytes.Contains(t.text.Bytes(), []byte(clusterReady)) {
		t.said = true
		close(t.ready)
	}
	return len(p), nil
}

// String returns what was printed so far.
func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// runHere runs cluster.sh on this machine until the test ends, and returns when it is
// ready. It ends when the test process does, too, however that dies.
func runHere(tb testing.TB, command []string) error {
	tb.Helper()
	out := &transcript{ready: make(chan struct{})}
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec // the script of this package
	cmd.Env = append(os.Environ(), "UNTIL_STDIN_ENDS=1")
	cmd.Stdout, cmd.Stderr = out, out
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { // ends with the script
		defer close(ended)
		_ = cmd.Wait() // what went wrong is in what it printed
	}()
	tb.Cleanup(func() {
		_ = stdin.Close() // tells it to end
		select {
		case <-ended:
		case <-time.After(endTimeout):
			_ = cmd.Process.Kill()
			tb.Errorf("servers: the cluster did not end within %v:\n%s", endTimeout, out)
		}
	})
	select {
	case <-out.ready:
		return nil
	case <-ended:
		return fmt.Errorf("it ended:\n%s", out)
	case <-time.After(readyTimeout):
		return fmt.Errorf("it is not ready after %v:\n%s", readyTimeout, out)
	}
}
