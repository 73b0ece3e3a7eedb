package connect

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/cluster"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/redisurl"
	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/transport"
)

// problem is the line to show, and what is behind it.
type problem struct {
	line  string
	cause error
}

func (p *problem) Error() string { return p.line }

func (p *problem) Unwrap() error { return p.cause }

// Problem returns the line to show when the server could not be used because of err:
// what is wrong, and what to do about it. It wraps err. A problem stays as it is, and so does an
// argument of no use, for which no server was asked.
func (s *Server) Problem(err error) error {
	if said := (*problem)(nil); errors.As(err, &said) {
		return said
	}
	if errors.Is(err, limits.ErrInvalid) {
		return err
	}
	return &problem{s.line(err), err}
}

// Explain is Problem where the address of the server is not known: it says what to do about a refusal.
// Other errors stay as they are.
func Explain(err error) error {
	text, refused := refusal(err)
	if said := (*problem)(nil); !refused || errors.As(err, &said) {
		return err
	}
	return &problem{joined("the server refuses: "+text, Remedy(err)), err}
}

func (s *Server) line(err error) string {
	if text, refused := refusal(err); refused {
		return joined(fmt.Sprintf("Redis at %s refuses: %s", s.placeOf(err), text), s.remedyHere(text))
	}
	if errors.Is(err, cluster.ErrUnserved) {
		return joined(fmt.Sprintf("no node of %s serves the slot of this name", s), remedies["CLUSTERDOWN"])
	}
	if isUnanswered(err) {
		if line := s.silence(err); line != "" {
			return line
		}
	}
	if line := s.stranger(err); line != "" {
		return line
	}
	if isBadReply(err) {
		return fmt.Sprintf("Redis at %s sent an invalid reply: %s. %s", s.placeOf(err), Reason(err), otherPort)
	}
	return fmt.Sprintf("cannot reach Redis at %s: %s. %s", s.placeOf(err), Reason(err), s.advice(err))
}

func joined(what, remedy string) string {
	if remedy == "" {
		return what
	}
	return what + ". " + remedy
}

// placeOf names the server that err is about: the one of a cluster or of Sentinels that was dialed,
// which is not always one that the user has named.
func (s *Server) placeOf(err error) string {
	switch at := (*redisconn.NodeError)(nil); {
	case s.of != nil:
		return s.Place() + ", " + s.of.calls()
	case s.IsDeployment() && errors.As(err, &at):
		return at.Addr + ", " + s.calls()
	}
	return s.String()
}

// calls says what a server of the deployment is to it.
func (s *Server) calls() string {
	if s.IsCluster() {
		return "a master of " + s.String()
	}
	return "the master that " + s.String() + " names"
}

// isBadReply reports whether err is about a reply that the command does not have. The client
// library has no type for its own errors about types.
func isBadReply(err error) bool {
	if errors.Is(err, transport.ErrBadReply) || errors.Is(err, respconn.ErrLimit) || errors.Is(err, redis.ErrNil) {
		return true
	}
	text := err.Error()
	return strings.Contains(text, "redigo: unexpected type") || strings.Contains(text, "redigo: unknown pubsub")
}

// refusal returns the text of an error that the server itself sent.
func refusal(err error) (string, bool) {
	var plain redis.Error
	if errors.As(err, &plain) {
		return tidy(plain.Error()), true
	}
	var wrapped *transport.ServerError
	if errors.As(err, &wrapped) {
		return tidy(wrapped.Text), true
	}
	return "", false
}

func (s *Server) advice(err error) string {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var record tls.RecordHeaderError
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return "Check the host in --redis or REDIS_URL."
	case errors.As(err, &authority):
		return "Name the authority that signed its certificate with --tls-ca."
	case errors.As(err, &host):
		return "Name the host as its certificate does, or give that name with --tls-server-name."
	case errors.As(err, &record):
		return "It does not speak TLS on this port: name the port that does, or leave TLS out."
	case alert(err) == "tls: certificate required":
		return "Give it one with --tls-cert and --tls-key."
	case s.isPlain() && hungUp(err):
		return "If it speaks TLS on this port, use --tls."
	case timedOut(err):
		return "It takes no connection: check the host and the port in --redis or REDIS_URL, and what is between, such as a firewall."
	case s.isNameless() && hungUp(err):
		return "If it wants a certificate of its clients, give it one with --tls-cert and --tls-key."
	}
	of := s
	if s.of != nil {
		of = s.of
	}
	switch at := (*redisconn.NodeError)(nil); {
	case of.IsCluster() && (s.of != nil || errors.As(err, &at)):
		return "If it is down, a replica replaces it after cluster-node-timeout (15 s unless set) and some seconds; without one, its locks come back with it. " +
			"If it is up, it announces an address that cannot be reached from here: see cluster-announce-ip, or give redlatch.NewCluster a dial function."
	case of.IsDeployment() && (s.of != nil || errors.As(err, &at)):
		return "If it is down, the Sentinels name another master after down-after-milliseconds (30 s unless set) and some seconds. " +
			"If it is up, it cannot be reached from here at that address: see replica-announce-ip, or give redlatch.NewSentinel a dial function."
	case s.IsCluster():
		return "Name nodes of a cluster in --redis or REDIS_URL: redis-cluster://host:port,host:port."
	case s.IsDeployment():
		return "Name Sentinels in --redis or REDIS_URL, and the master as they do: redis-sentinel://host:port,host:port/master."
	}
	return "Start one, or set --redis or REDIS_URL; `redlatch serve` starts one for development."
}

func (s *Server) isPlain() bool {
	return !s.at.Secure && s.at.Kind != redisurl.Socket
}

// isNameless reports whether TLS is spoken without a certificate of our own.
func (s *Server) isNameless() bool {
	return s.at.Secure && (s.tls == nil || len(s.tls.Certificates) == 0)
}

// hungUp reports whether the server ended the connection, which may be seen before its
// error is read.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// Reason returns the innermost cause of an error, in few words: what the server has
// answered, or what is wrong with the network.
func Reason(err error) string {
	if text, refused := refusal(err); refused {
		return text
	}
	var errno syscall.Errno
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return dns.Err
	case errors.As(err, &errno):
		return errno.Error()
	case timedOut(err):
		return "timed out"
	}
	return encryption(err)
}

// ReasonAt is Reason with the server of a cluster, or the master of Sentinels, that failed.
func ReasonAt(err error) string {
	if at := (*redisconn.NodeError)(nil); errors.As(err, &at) {
		return at.Addr + ": " + Reason(err)
	}
	return Reason(err)
}

// encryption returns why TLS did not come about, or what err says.
func encryption(err error) string {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &certificate):
		return certificate.Err.Error()
	case errors.As(err, &record):
		return record.Msg
	case alert(err) != "":
		return "it says " + alert(err)
	case errors.Is(err, io.EOF):
		return "it closed the connection"
	}
	// Errors of several lines come from errors.Join.
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// alert returns the TLS alert that the server sent, "" for none. Its type is not
// exported.
func alert(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" {
		return op.Err.Error()
	}
	return ""
}

// Where a script failed is nothing that its user can do anything about. Redis 6 puts it
// before what was wrong, and servers since then behind.
var (
	scriptBefore = regexp.MustCompile(`^ERR Error (running|compiling) script \([^)]*\): (@?user_script: ?\d+: )*-?`)
	scriptBehind = regexp.MustCompile(` script: [0-9a-f]{40}, on @user_script:\d+\.?$`)
)

// tidy returns what a server has answered without where in a script that was.
func tidy(text string) string {
	text = scriptBefore.ReplaceAllString(text, "")
	return strings.TrimRight(scriptBehind.ReplaceAllString(text, ""), ". ")
}

// deniedInScript are the beginnings of errors of commands that are denied within a script.
// Some of them do not name the command.
var deniedInScript = []string{"ERR The user executing the script can't ", "The user executing the script can't ", "ERR ACL failure in script: "}

// deniedCommand finds the command that is denied.
var deniedCommand = regexp.MustCompile(`to run the '([^']+)' command`)

// isDenial reports whether a server's answer is that the user lacks a right.
func isDenial(text string) bool {
	begins := func(with string) bool { return strings.HasPrefix(text, with) }
	return begins("NOPERM") || slices.ContainsFunc(deniedInScript, begins)
}

// lacked names the rights that the user lacks, as far as they or the server's error name
// them.
func lacked(text string, rights []string) string {
	m := deniedCommand.FindStringSubmatch(text)
	switch {
	case len(rights) > 0:
		return "The user lacks " + strings.Join(rights, " ") + ". "
	case m != nil:
		return "The user lacks +" + m[1] + ". "
	case strings.Contains(text, " key"), strings.Contains(text, " channel"):
		return "The user may not use this name (see doctor --prefix). "
	}
	return ""
}

// Denied reports whether err is the server's answer that the user lacks a right.
func Denied(err error) bool {
	text, refused := refusal(err)
	return refused && isDenial(text)
}

// Remedy says what to do when err is the server's refusal, "" when that is not known, and when it is
// none. Rights are those that are known to be missing, in the words of ACL SETUSER; without any it
// names what the server has named.
func Remedy(err error, rights ...string) string {
	text, refused := refusal(err)
	switch {
	case !refused:
		return ""
	case isDenial(text):
		return remedyOfDenial(text, rights)
	}
	return remedy(text)
}

func remedyOfDenial(text string, rights []string) string {
	return lacked(text, rights) + "`redlatch doctor` shows which rights are missing, docs/operations.md what they are for."
}
