//go:build unix

package hold

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	// socketLimit bounds each read and write on the socket, but not the release.
	socketLimit = 5 * time.Second
	// longestPath is the length of a socket path that works on all systems.
	longestPath = 100
	runtimeEnv  = "XDG_RUNTIME_DIR"
)

// codeOther means that the hold belongs to another owner.
const codeOther = -1

// socket connects redlatch release to the process that redlatch hold -s has started.
//
//	hold -s: listen(owner) ─▶ requests ─▶ (the lock is freed) ─▶ request.answer
//	                             ▲                                   │
//	release:  ask(path, owner) ──┘◀──────────────────────────────────┘
//
// Process IDs do not matter, because they may be reused. A process answers only requests that name
// its own owner.
type socket struct {
	owner    string
	listener *net.UnixListener
	requests chan *request
	stop     chan struct{}
	done     chan struct{}
}

// Every request must be answered.
type request struct{ conn net.Conn }

func listen(owner string) (*socket, error) {
	path, err := socketPath(owner)
	if err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	s := &socket{owner: owner, listener: l, requests: make(chan *request), stop: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s, nil
}

func (s *socket) path() string { return s.listener.Addr().String() }

func (s *socket) close() {
	_ = s.listener.Close()
	close(s.stop)
	<-s.done
}

// run serves one connection at a time. Only programs run by the same user can connect.
func (s *socket) run() {
	defer close(s.done)
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			select {
			case <-s.stop:
				return
			case <-time.After(socketLimit / 50): // there may be too many open files for now
				continue
			}
		}
		s.read(conn)
	}
}

func (s *socket) read(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(socketLimit))
	var owner string
	if json.NewDecoder(conn).Decode(&owner) != nil {
		_ = conn.Close()
		return
	}
	if owner != s.owner {
		(&request{conn}).answer(answer{Code: codeOther})
		return
	}
	select {
	case s.requests <- &request{conn}:
	case <-s.stop: // the closed connection means that the hold has ended
		_ = conn.Close()
	}
}

func (r *request) answer(a answer) {
	_ = r.conn.SetDeadline(time.Now().Add(socketLimit))
	_ = json.NewEncoder(r.conn).Encode(a) // fails if the client has exited
	_ = r.conn.Close()
}

// ask waits until the lock is free, and returns how the hold ended. It may return errEnded,
// errKilled, errOther, ctx's error or a system error.
func ask(ctx context.Context, path, owner string) (a answer, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return a, errEnded
	case errors.Is(err, syscall.ECONNREFUSED):
		if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
			return a, errors.New(path + " is not a socket")
		}
		_ = os.Remove(path) // the killed process could not remove it
		return a, errKilled
	case err != nil:
		return a, err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err = json.NewEncoder(conn).Encode(owner); err == nil {
		err = json.NewDecoder(conn).Decode(&a)
	}
	switch {
	case ctx.Err() != nil:
		return answer{}, ctx.Err()
	case err != nil:
		if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
			return answer{}, errEnded // a killed process would have left its socket
		}
		return answer{}, errKilled
	case a.Code == codeOther:
		return answer{}, errOther
	}
	return a, nil
}

// socketPath returns a path in a directory that other users cannot access.
func socketPath(owner string) (string, error) {
	folder := filepath.Join(os.TempDir(), "redlatch-"+strconv.Itoa(os.Geteuid()))
	if own := os.Getenv(runtimeEnv); filepath.IsAbs(own) {
		folder = filepath.Join(own, "redlatch")
	}
	if err := makePrivate(folder); err != nil {
		return "", fmt.Errorf("no directory for the socket: %w. "+runtimeEnv+" can set another one", err)
	}
	sum := sha256.Sum256([]byte(owner))
	path := filepath.Join(folder, hex.EncodeToString(sum[:12])+".sock")
	if len(path) > longestPath {
		return "", fmt.Errorf("%s is too long for a socket path: "+runtimeEnv+" can set a shorter directory", path)
	}
	return path, nil
}

func makePrivate(folder string) error {
	//nolint:gosec // the user's own environment names the folder
	if err := os.Mkdir(folder, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	info, err := os.Lstat(folder) //nolint:gosec // as above
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is accessible to other users", folder)
	}
	return nil
}
