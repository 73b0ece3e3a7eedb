package hold

import (
	"net"
	"os"
	"strings"
	"time"
)

// The service manager is told how far a service is, as systemd's sd_notify(3) does: by datagrams
// to the socket that NOTIFY_SOCKET names. Where that is not set, nothing is sent.
const (
	notifySocketEnv = "NOTIFY_SOCKET"
	// notifyLimit bounds a message to a service manager that does not read.
	notifyLimit = time.Second

	notifyReady    = "READY=1"    // the service has begun its work
	notifyStopping = "STOPPING=1" // it ends it
)

// notifyStatus returns what is shown as the service's status. Line breaks become blanks.
func notifyStatus(text string) string { return "STATUS=" + strings.Join(strings.Fields(text), " ") }

// notify sends messages in one datagram. What goes wrong is not reported: a service does its work
// without its manager, too.
func notify(messages ...string) {
	path := os.Getenv(notifySocketEnv)
	if path == "" {
		return
	}
	// A first @ stands for a name that is in no folder; package net knows it.
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }() // nothing is buffered
	_ = conn.SetWriteDeadline(time.Now().Add(notifyLimit))
	_, _ = conn.Write([]byte(strings.Join(messages, "\n")))
}
