// Package connect is how the command line reaches a server, and says why it cannot.
//
//	flags, environment ─▶ Settings ─New─▶ Server ─Open─▶ *redlatch.Client
//	                                        ├────Dial─▶ redis.Conn
//	                                        └─Problem─▶ one line: what is wrong, what to do
//
// [New] finds what is wrong with an address, or with a file that a flag names,
// before anything is sent. [Server.Problem] turns what goes wrong later into one line
// that says what to do. No line ever has a user or a password in it, and neither
// Settings nor Server shows them when it is printed.
package connect
