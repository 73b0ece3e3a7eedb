// Package servertime compares this machine's clock with the server's, and tells scripts the
// time.
package servertime
