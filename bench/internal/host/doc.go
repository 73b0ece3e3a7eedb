// Package host has what the benchmark runs on: processes on chosen processors, a
// redis-server of its own, and what that server says of its work.
package host
