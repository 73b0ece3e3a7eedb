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
	// socketLimit bounds how long the two ends wait for what is not the release itself.
	socketLimit = 5 * time.Second
	// longestPath is how long the path of a socket may be on all systems.
	longestPath = 100
	runtimeEnv  = "XDG_RUNTIME_DIR"
)

// codeOther is the code of an answer that says that the hold is one of another owner.
const codeOther = -1

// socket is how redlatch release reaches the process that redlatch hold -s has left in the
// background: a socket in a folder of the user's own.
//
//	hold -s: listen(owner) ─▶ requests ─▶ (the lock is freed) ─▶ request.answer
//	                             ▲                                   │
//	release:  ask(path, owner) ──┘◀──────────────────────────────────┘
//
// Nothing is sent to a number of a process, which another one may have by then: a socket without
// its process refuses, and a process answers for its own owner alone.
type socket struct {
	owner    string
	listener *net.UnixListener
	requests chan request
	stop     chan struct{}
	done     chan struct{}
}

// request asks for the hold to be released. It must be answered.
type request struct{ conn net.Conn }

// listen opens the socket of an owner's hold. Its errors are those of socketPath and of the system.
func listen(owner string) (*socket, error) {
	path, err := socketPath(owner)
	if err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	s := &socket{owner: owner, listener: l, requests: make(chan request), stop: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s, nil
}

// path returns the path of the socket.
func (s *socket) path() string { return s.listener.Addr().String() }

// close removes the socket.
func (s *socket) close() {
	_ = s.listener.Close() // it is on no disk
	close(s.stop)
	<-s.done
}

// run takes one connection after the other: each is from a program of the same user.
func (s *socket) run() {
	defer close(s.done)
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			select {
			case <-s.stop:
				return
			case <-time.After(socketLimit / 50): // too many files are open, for a time
				continue
			}
		}
		s.read(conn)
	}
}

// read reads for whom a release is asked, and passes that on. Another owner is refused.
func (s *socket) read(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(socketLimit)) // a socket has deadlines
	var owner string
	if json.NewDecoder(conn).Decode(&owner) != nil {
		_ = conn.Close()
		return
	}
	if owner != s.owner {
		request{conn}.answer(answer{Code: codeOther})
		return
	}
	select {
	case s.requests <- request{conn}:
	case <-s.stop: // the socket is gone, which says that the hold has ended
		_ = conn.Close()
	}
}

// answer tells what became of the hold, and ends the request.
func (r request) answer(a answer) {
	_ = r.conn.SetDeadline(time.Now().Add(socketLimit))
	_ = json.NewEncoder(r.conn).Encode(a) // the program that asked may be gone
	_ = r.conn.Close()
}

// ask has the process at a socket release the hold of an owner, and returns what became of it when
// the lock is freed. Its errors are errEnded, errKilled, errOther, that of ctx, and others of the system.
func ask(ctx context.Context, path, owner string) (a answer, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return a, errEnded
	case errors.Is(err, syscall.ECONNREFUSED):
		if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
			return a, errors.New(path + " is no socket")
		}
		_ = os.Remove(path) // its process can no longer
		return a, errKilled
	case err != nil:
		return a, err
	}
	defer func() { _ = conn.Close() }() // nothing is buffered
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err = json.NewEncoder(conn).Encode(owner); err == nil {
		err = json.NewDecoder(conn).Decode(&a)
	}
	switch {
	case ctx.Err() != nil:
		return answer{}, ctx.Err()
	case err != nil:
		if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
			return answer{}, errEnded // it removes its socket, and a process that is killed does not
		}
		return answer{}, errKilled
	case a.Code == codeOther:
		return answer{}, errOther
	}
	return a, nil
}

// socketPath returns the path of the socket of an owner's hold. It makes the folder, in
// XDG_RUNTIME_DIR or else in that for temporary files. An error says that the folder cannot be
// made, or can be written by other users.
func socketPath(owner string) (string, error) {
	folder := filepath.Join(os.TempDir(), "redlatch-"+strconv.Itoa(os.Geteuid()))
	if own := os.Getenv(runtimeEnv); filepath.IsAbs(own) {
		folder = filepath.Join(own, "redlatch")
	}
	if err := makePrivate(folder); err != nil {
		return "", fmt.Errorf("no folder for a socket: %w. "+runtimeEnv+" may name another", err)
	}
	sum := sha256.Sum256([]byte(owner))
	path := filepath.Join(folder, hex.EncodeToString(sum[:12])+".sock")
	if len(path) > longestPath {
		return "", fmt.Errorf("%s is too long for a socket: "+runtimeEnv+" may name a shorter folder", path)
	}
	return path, nil
}

// makePrivate makes a folder that this user alone can use, or finds it.
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
		return fmt.Errorf("%s can be used by other users", folder)
	}
	return nil
}
