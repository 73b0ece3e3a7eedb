package redistest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// reserve binds a socket to the address and never listens on it. At first it does not share
// the port, so that it fails when the port is taken; then it shares it with sockets that
// ask for that, as the proxy's own listener does and no server.
func reserve(addr string) (*port, error) {
	tcp, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	to := &unix.SockaddrInet4{Port: tcp.Port, Addr: [4]byte(tcp.IP.To4())}
	err = os.NewSyscallError("bind", unix.Bind(fd, to))
	if err == nil {
		err = share(fd)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", addr, errorAfterClose(fd, err))
	}
	return &port{
		addr:    addr,
		config:  net.ListenConfig{Control: shareRaw},
		release: sync.OnceFunc(func() { _ = unix.Close(fd) }), // a socket that was never used
	}, nil
}

func share(fd int) error {
	return os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
}

func shareRaw(_, _ string, c syscall.RawConn) error {
	var failed error
	if err := c.Control(func(fd uintptr) { failed = share(int(fd)) }); err != nil {
		return err
	}
	return failed
}

func errorAfterClose(fd int, err error) error {
	_ = unix.Close(fd) // a socket that was never used
	return err
}

// shutDown ends what all copies of the listener would accept.
func shutDown(l *net.TCPListener) {
	c, err := l.SyscallConn()
	if err != nil {
		return // it is closed
	}
	_ = c.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) }) // the same
}

// dieWithParent makes the kernel kill the process when the thread that starts
// it ends, so that not even a test binary that was killed leaves it behind.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// stopped reports whether the process stands still after SIGSTOP, which takes
// effect only when the process is next looked at by the scheduler.
func stopped(pid int) (bool, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false, err
	}
	// pid (name) state …: the name may hold blanks and brackets of its own.
	_, rest, ok := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(") "))
	return ok && len(rest) > 0 && (rest[0] == 'T' || rest[0] == 't'), nil
}
