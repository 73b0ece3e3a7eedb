package program

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	once     = "1"
	resident = "resident"
)

// A residentProgram is a process that runs many command lines sequentially, which saves CPU time.
type residentProgram struct {
	calls   *json.Encoder
	replies *bufio.Reader
	pipe    *os.File
	process *os.Process
}

var idle struct {
	mu  sync.Mutex // guards the field all
	all []*residentProgram
}

// call is a command line. Its arguments may be invalid UTF-8.
type call struct {
	URL, Dir string
	Args     [][]byte
}

type reply struct {
	Code           int
	Stdout, Stderr []byte
}

func finishInResident(t *testing.T, url string, args []string) Outcome {
	t.Helper()
	p := takeIdle(t)
	c := call{URL: url, Dir: t.TempDir()}
	for _, arg := range args {
		c.Args = append(c.Args, []byte(arg))
	}
	var got reply
	done := false
	defer func() {
		if !done {
			_ = p.process.Kill()
			return
		}
		idle.mu.Lock()
		defer idle.mu.Unlock()
		idle.all = append(idle.all, p)
	}()
	require.NoError(t, p.calls.Encode(c))
	require.NoError(t, p.pipe.SetReadDeadline(time.Now().Add(2*Soon)))
	line, err := p.replies.ReadBytes('\n')
	require.NoError(t, err, "%.200q does not end: %s", args, line)
	if err := json.Unmarshal(line, &got); err != nil {
		_ = p.process.Kill()
		rest, _ := io.ReadAll(p.replies)
		require.NoError(t, err, "a panic or a race of %.200q: %s%s", args, line, rest)
	}
	done = true
	return Outcome{got.Code, string(got.Stdout), string(got.Stderr)}
}

func takeIdle(t *testing.T) *residentProgram {
	t.Helper()
	idle.mu.Lock()
	defer idle.mu.Unlock()
	if last := len(idle.all) - 1; last >= 0 {
		p := idle.all[last]
		idle.all = idle.all[:last]
		return p
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe) //nolint:noctx // the process outlives the test
	cmd.Env = append(os.Environ(), Env+"="+resident, "GORACE=atexit_sleep_ms=0")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = cmd.Stdout
	require.NoError(t, cmd.Start())
	return &residentProgram{json.NewEncoder(in), bufio.NewReader(out), out.(*os.File), cmd.Process}
}

func serveCalls(run func(args []string) int) error {
	calls, replies := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	silence, typed, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = typed.Close() }()
	os.Stdin = silence
	if err := os.Setenv(Env, once); err != nil {
		return err
	}
	for {
		var c call
		if err := calls.Decode(&c); err != nil {
			return err
		}
		got, err := c.run(run)
		if err != nil {
			return err
		}
		if err := replies.Encode(got); err != nil {
			return err
		}
	}
}

func (c call) run(run func(args []string) int) (got reply, err error) {
	if err := os.Chdir(c.Dir); err != nil {
		return reply{}, err
	}
	if err := os.Setenv("REDIS_URL", c.URL); err != nil {
		return reply{}, err
	}
	os.Args = os.Args[:1]
	for _, arg := range c.Args {
		os.Args = append(os.Args, string(arg))
	}
	stdout, err := capture(&os.Stdout)
	if err != nil {
		return reply{}, err
	}
	stderr, err := capture(&os.Stderr)
	if err != nil {
		return reply{}, err
	}
	got.Code = run(os.Args[1:])
	got.Stdout, got.Stderr = stdout(), stderr()
	return got, nil
}

// capture replaces a file with a pipe. The function that it returns restores the file and returns the captured output.
func capture(file **os.File) (written func() []byte, err error) {
	before := *file
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	*file = w
	all := make(chan []byte)
	go func() {
		text, _ := io.ReadAll(r)
		_ = r.Close()
		all <- text
	}()
	return func() []byte {
		*file = before
		_ = w.Close()
		return <-all
	}, nil
}
