// Package sdnotify tells the service manager how far a service is, as systemd's sd_notify(3) does:
// datagrams to the socket that NOTIFY_SOCKET names. Where that is not set, nothing is sent.
package sdnotify

import (
	"net"
	"os"
	"strings"
	"time"
)

const (
	socketEnv = "NOTIFY_SOCKET"
	// limit bounds a message to a service manager that does not read.
	limit = time.Second
)

// Ready says that the service has begun its work, Stopping that it ends it.
const (
	Ready    = "READY=1"
	Stopping = "STOPPING=1"
)

// Status returns what is shown as the service's status. Line breaks become blanks.
func Status(text string) string { return "STATUS=" + strings.Join(strings.Fields(text), " ") }

// Send sends messages, such as Ready, in one datagram. What goes wrong is not reported: a service
// does its work without its manager, too. Any goroutine may call it.
func Send(messages ...string) {
	path := os.Getenv(socketEnv)
	if path == "" {
		return
	}
	// A first @ stands for a name that is in no folder; package net knows it.
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }() // nothing is buffered
	_ = conn.SetWriteDeadline(time.Now().Add(limit))
	_, _ = conn.Write([]byte(strings.Join(messages, "\n")))
}
