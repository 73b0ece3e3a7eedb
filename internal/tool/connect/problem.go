package connect

import (
	"cmp"
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
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/transport"
)

type problem struct {
	line  string
	cause error
}

func (p *problem) Error() string { return p.line }

func (p *problem) Unwrap() error { return p.cause }

// Problem returns a message and a remedy for the user if the server could not be used. It wraps
// err, and returns a problem or an invalid argument unchanged.
func (s *Server) Problem(err error) error {
	if said := (*problem)(nil); errors.As(err, &said) {
		return said
	}
	if errors.Is(err, limits.ErrInvalid) {
		return err
	}
	return &problem{s.line(err), err}
}

// Explain adds the remedy to an error that the server returned. Other errors are returned
// unchanged.
func Explain(err error) error {
	text, refused := refusal(err)
	if said := (*problem)(nil); !refused || errors.As(err, &said) {
		return err
	}
	return &problem{joined("rejected by the server: "+text, Remedy(err)), err}
}

func (s *Server) line(err error) string {
	if text, refused := refusal(err); refused {
		if at := s.sentinelIn(err, text); at != "" {
			return joined(fmt.Sprintf("the Sentinel at %s rejected the request: %s", at, text), s.remedyAtSentinel(text))
		}
		return joined(fmt.Sprintf("Redis at %s rejected the request: %s", s.placeOf(err), text), s.remedyHere(text))
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

// sentinelIn returns the address of the Sentinel that rejected a request with text, as an error of package failover
// names it, or "".
func (s *Server) sentinelIn(err error, text string) string {
	if s.at.Kind != redisurl.Sentinels {
		return ""
	}
	m := regexp.MustCompile(`sentinel (\S+): ` + regexp.QuoteMeta(text)).FindStringSubmatch(err.Error())
	if m == nil {
		return ""
	}
	return m[1]
}

func (s *Server) remedyAtSentinel(text string) string {
	code, _, _ := strings.Cut(text, " ")
	switch {
	case isDenial(text):
		return "As an administrator of the Sentinels: ACL SETUSER " + cmp.Or(s.at.SentinelUser, "default") +
			" +sentinel|master +sentinel|get-master-addr-by-name +sentinel|sentinels"
	case code == "NOAUTH" || code == "WRONGPASS":
		return "Set the Sentinels' user and password in the address, in REDIS_URL: ?sentinel_user=USER&sentinel_password=PASSWORD."
	}
	return s.remedyHere(text)
}

func (s *Server) placeOf(err error) string {
	switch at := (*redisconn.NodeError)(nil); {
	case s.of != nil:
		return s.Place() + ", " + s.of.calls()
	case s.IsDeployment() && errors.As(err, &at):
		return at.Addr + ", " + s.calls()
	}
	return s.String()
}

func (s *Server) calls() string {
	if s.IsCluster() {
		return "a master of " + s.String()
	}
	return "the master that " + s.String() + " names"
}

func isBadReply(err error) bool {
	if errors.Is(err, transport.ErrBadReply) || errors.Is(err, respconn.ErrLimit) || errors.Is(err, redis.ErrNil) {
		return true
	}
	text := err.Error()
	return strings.Contains(text, "redigo: unexpected type") || strings.Contains(text, "redigo: unknown pubsub")
}

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
		return "Set --tls-ca to the authority that signed its certificate."
	case errors.As(err, &host):
		return "Use the host name in its certificate, or set --tls-server-name to that name."
	case errors.As(err, &record):
		return "This port does not use TLS: use the TLS port, or turn TLS off."
	case alert(err) == "tls: certificate required":
		return "Set --tls-cert and --tls-key."
	case alert(err) == "tls: protocol version not supported":
		return "Redlatch needs TLS 1.2 or later: enable it on the server."
	case s.isPlain() && hungUp(err):
		return "If this port uses TLS, use an address that starts with rediss."
	case timedOut(err):
		return "It does not accept connections: check the host and port in --redis or REDIS_URL, and any firewall in between."
	case s.isNameless() && hungUp(err):
		return "If it requires client certificates, set --tls-cert and --tls-key."
	}
	of := s
	if s.of != nil {
		of = s.of
	}
	switch at := (*redisconn.NodeError)(nil); {
	case of.IsCluster() && (s.of != nil || errors.As(err, &at)):
		return "If it is down, a replica replaces it after cluster-node-timeout (15 s unless set) and a few seconds; without a replica, its locks return if it restarts with its data. " +
			"If it is up, the address it announces is unreachable from here: see cluster-announce-ip."
	case of.IsDeployment() && (s.of != nil || errors.As(err, &at)):
		return "If it is down, the Sentinels promote another master after down-after-milliseconds (30 s unless set) and a few seconds. " +
			"If it is up, that address is unreachable from here: see replica-announce-ip."
	case s.IsCluster():
		return "List cluster nodes in --redis or REDIS_URL: redis-cluster://host:port,host:port."
	case s.IsDeployment():
		return "List the Sentinels and their master's name in --redis or REDIS_URL: redis-sentinel://host:port,host:port/master."
	}
	return "Start one, or set --redis or REDIS_URL" + s.serve() + "."
}

// serve names the command that starts a server at this address, if this machine can.
func (s *Server) serve() string {
	host, addr := s.Host(), ""
	switch ip := net.ParseIP(host); {
	case s.at.Secure || host != "localhost" && !ip.IsLoopback():
		return ""
	case s.at.Hosts[0] != "127.0.0.1:6379" && s.at.Hosts[0] != "localhost:6379":
		addr = " --addr " + sanitize.Arg(s.at.Hosts[0])
	}
	return "; `redlatch serve" + addr + "` starts one for development"
}

func (s *Server) isPlain() bool {
	return !s.at.Secure && s.at.Kind != redisurl.Socket
}

func (s *Server) isNameless() bool {
	return s.at.Secure && (s.tls == nil || len(s.tls.Certificates) == 0)
}

func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// Reason returns the innermost cause, either the server's error or the network's.
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

// ReasonAt adds the address of the node in a deployment to Reason.
func ReasonAt(err error) string {
	if at := (*redisconn.NodeError)(nil); errors.As(err, &at) {
		return at.Addr + ": " + Reason(err)
	}
	return Reason(err)
}

func encryption(err error) string {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &certificate):
		return certificate.Err.Error()
	case errors.As(err, &record):
		return record.Msg
	case alert(err) != "":
		return "it replied " + alert(err)
	case errors.Is(err, io.EOF):
		return "it closed the connection"
	}
	// errors.Join uses several lines.
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// alert returns the server's TLS alert, or "" for other errors.
func alert(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" {
		return op.Err.Error()
	}
	return ""
}

// These match the position in a script, which is before the message in Redis 6 and after it in
// later servers.
var (
	scriptBefore = regexp.MustCompile(`^ERR Error (running|compiling) script \([^)]*\): (@?user_script: ?\d+: )*-?`)
	scriptBehind = regexp.MustCompile(` script: [0-9a-f]{40}, on @user_script:\d+\.?$`)
)

func tidy(text string) string {
	text = scriptBefore.ReplaceAllString(text, "")
	return strings.TrimRight(scriptBehind.ReplaceAllString(text, ""), ". ")
}

var deniedInScript = []string{"ERR The user executing the script can't ", "The user executing the script can't ", "ERR ACL failure in script: "}

var deniedCommand = regexp.MustCompile(`to run the '([^']+)' command`)

func isDenial(text string) bool {
	begins := func(with string) bool { return strings.HasPrefix(text, with) }
	return begins("NOPERM") || slices.ContainsFunc(deniedInScript, begins)
}

var remedies = map[string]string{
	"READONLY":   "It is a replica: use its master (redis-cli ROLE shows it), or its Sentinels (redis-sentinel://).",
	"OOM":        "Its memory is full: free memory, or raise maxmemory. Locks are small, but fail like all other writes.",
	"LOADING":    "It has just started: wait until it has loaded its data.",
	"BUSY":       "A client's script has been running for a long time: SCRIPT KILL stops it if it has not written yet.",
	"MISCONF":    "It cannot save its data, so it rejects writes: check its log and its disk.",
	"WRONGTYPE":  "Another program uses a key of the lock: `redlatch status` names the key.",
	"NOAUTH":     "Check the user and password: --user, and REDIS_PASSWORD or --password-file.",
	"WRONGPASS":  "Check the user (--user, or in the address) and password (REDIS_PASSWORD or --password-file).",
	"NOREPLICAS": "Fewer replicas are connected and up to date than min-replicas-to-write requires: INFO replication lists them.",
	"MASTERDOWN": "It is a replica that has lost its master, and replica-serve-stale-data is off: use the master, or check INFO replication and the log.",
	"CLUSTERDOWN": "A master is down, or some slots have no master. A failover takes cluster-node-timeout and a few seconds; " +
		"`redlatch doctor` shows the masters, redis-cli --cluster check the slots.",
	"TRYAGAIN": slotMoves,
	"ASK":      slotMoves,
}

const slotMoves = "The slot of this name is moving to another node, and its keys are on both. Try again after the move; " +
	"`redlatch doctor` shows moving slots, and redis-cli --cluster fix completes an interrupted move."

// phrases are for errors whose text says more than their code.
var phrases = []struct{ part, remedy string }{
	{"No such master", "In the path of --redis or REDIS_URL, use the master's name that the Sentinels know."},
	{"DB index", "It does not have this database: most servers have 0 to 15. The address in --redis or REDIS_URL sets the database after the last /, or with db= for a unix socket."},
	{"SELECT is not allowed in cluster mode", "It is a cluster node, which has database 0 only: remove the number, and use redis-cluster:// in --redis or REDIS_URL."},
	{"without any password configured", "The server has no password: remove REDIS_PASSWORD or --password-file, or the password in the address."},
	{"max number of clients", "It has reached its connection limit: disconnect some clients, or raise maxclients."},
	{"cluster support disabled", "It is not part of a cluster: use redis:// in --redis or REDIS_URL."},
}

// Denied reports whether the user lacks a right.
func Denied(err error) bool {
	text, refused := refusal(err)
	return refused && isDenial(text)
}

// Remedy returns the remedy for an error that the server returned, or "" for other errors. rights
// are the missing rights as ACL SETUSER rules; by default, Remedy derives them from the error text.
func Remedy(err error, rights ...string) string {
	text, refused := refusal(err)
	if !refused {
		return ""
	}
	return remedy(text, rights...)
}

func remedy(text string, rights ...string) string {
	if isDenial(text) {
		return lacked(text, rights) + "`redlatch doctor` shows the missing rights; docs/operations.md explains them."
	}
	for _, p := range phrases {
		if strings.Contains(text, p.part) {
			return p.remedy
		}
	}
	code, _, _ := strings.Cut(text, " ")
	return remedies[code]
}

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

func (s *Server) remedyHere(text string) string {
	code, _, _ := strings.Cut(text, " ")
	m := deniedCommand.FindStringSubmatch(text)
	switch {
	case s.IsCluster() && isDenial(text) && m != nil && strings.HasPrefix(m[1], "cluster"):
		return "As an administrator: ACL SETUSER " + s.User() + " +cluster|slots +pubsub|shardnumsub"
	case (code == "MOVED" || code == "CROSSSLOT") && !s.IsCluster():
		return "It is a cluster node: use redis-cluster:// in --redis or REDIS_URL."
	case !strings.Contains(text, "unknown command"):
		return remedy(text)
	case strings.Contains(text, "SENTINEL"):
		return "It is not a Sentinel: Sentinels listen on a separate port, usually 26379."
	}
	if at := s.sentinel(); at != "" {
		return "It is a Sentinel, which does not store locks: list the Sentinels and their master in --redis or REDIS_URL, redis-sentinel://" + at +
			"/MASTER. SENTINEL MASTERS lists the masters."
	}
	return ""
}
