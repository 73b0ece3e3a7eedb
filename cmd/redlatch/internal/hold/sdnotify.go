package hold

import (
	"net"
	"os"
	"strings"
	"time"
)

// The protocol of systemd's sd_notify(3): datagrams to the socket in NOTIFY_SOCKET, if set.
const (
	notifySocketEnv = "NOTIFY_SOCKET"
	// notifyLimit bounds a write to a service manager that does not read.
	notifyLimit = time.Second

	notifyReady    = "READY=1"
	notifyStopping = "STOPPING=1"
)

// notifyStatus returns a message that sets the service's status. Line breaks become blanks.
func notifyStatus(text string) string { return "STATUS=" + strings.Join(strings.Fields(text), " ") }

// notify sends messages in one datagram. It ignores errors: a service also works without its
// manager.
func notify(messages ...string) {
	path := os.Getenv(notifySocketEnv)
	if path == "" {
		return
	}
	// An initial @ marks an abstract name; package net knows it.
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetWriteDeadline(time.Now().Add(notifyLimit))
	_, _ = conn.Write([]byte(strings.Join(messages, "\n")))
}
