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

// reserve binds a socket without SO_REUSEPORT, so that it fails if the port is in use. It sets the option afterwards,
// so that the listener of a proxy, but no server, can share the port.
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
		release: sync.OnceFunc(func() { _ = unix.Close(fd) }),
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
	_ = unix.Close(fd)
	return err
}

// shutDown stops the listener and all copies of it.
func shutDown(l *net.TCPListener) {
	c, err := l.SyscallConn()
	if err != nil {
		return
	}
	_ = c.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) })
}

// StartOn starts cmd on the processors cpus, or on any processor if cpus is empty. The kernel kills the command when
// the calling thread ends, so the caller must be locked to its thread.
func StartOn(cmd *exec.Cmd, cpus []int) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if len(cpus) == 0 {
		return cmd.Start()
	}
	var before, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return err
	}
	err := cmd.Start()
	if restored := unix.SchedSetaffinity(0, &before); err == nil {
		err = restored
	}
	return err
}

// stopped reports whether the process has stopped. SIGSTOP takes effect only the next time that the process is
// scheduled.
func stopped(pid int) (bool, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false, err
	}
	// The text has the form "pid (name) state …", where the name may contain spaces and parentheses.
	_, rest, ok := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(") "))
	return ok && len(rest) > 0 && (rest[0] == 'T' || rest[0] == 't'), nil
}
