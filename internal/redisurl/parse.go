package redisurl

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	nodePort     = "6379"
	sentinelPort = "26379"
)

const (
	optDB               = "db"
	optSharding         = "sharded_pubsub"
	optSentinelUser     = "sentinel_user"
	optSentinelPassword = "sentinel_password"
)

// ErrEscape means that the user or the password in an address contains an unescaped special
// character.
var ErrEscape = errors.New("invalid address: an @ follows the first / ? or #: " +
	"in the user and the password write / as %2F, ? as %3F and # as %23")

var (
	errUser       = errors.New("invalid address: percent-encode special characters in the user and the password")
	errPercent    = errors.New("invalid address: the user or password has a % that is not an escape: write it as %25")
	errNoHost     = errors.New("invalid address: the host is missing")
	errHost       = errors.New("invalid address: the host has an invalid character")
	errColons     = errors.New("invalid address: the host has several colons: put [ ] around an IPv6 address, and @ after the password")
	errPort       = errors.New("invalid address: the port must be a number from 1 to 65535, and an @ must separate a password from the host")
	errHosts      = errors.New("invalid address: several hosts: write redis-cluster://host,host, or redis-sentinel://host,host/mymaster")
	errFragment   = errors.New("invalid address: remove the # and the text after it, or write it as %23 in the user and the password")
	errOptions    = errors.New("invalid address: a single server does not support options: remove the ? and the text after it")
	errDatabase   = errors.New("invalid address: the database must be a number from 0, as in redis://host:6379/0")
	errThree      = errors.New("invalid address: a Unix socket has three slashes: write unix:///path")
	errNoPath     = errors.New("invalid address: the path is missing: write unix:///path")
	errPath       = errors.New("invalid address: the path has a % that is not an escape: write it as %25")
	errSocketOpts = errors.New("invalid address: a Unix socket supports only the option db: write unix:///path?db=0")
	errQuery      = errors.New("invalid address: percent-encode special characters in the options")
)

// Parse parses an address.
func Parse(raw string) (*Address, error) {
	if len(raw) > longest {
		return nil, fmt.Errorf("invalid address: %d bytes: must be at most %d", len(raw), longest)
	}
	if err := checkText(raw); err != nil {
		return nil, err
	}
	name, rest, _ := strings.Cut(raw, ":")
	text, slashes := strings.CutPrefix(rest, "//")
	a, known := schemeOf(strings.ToLower(name))
	switch {
	case known && (slashes || a.Kind == Socket && strings.HasPrefix(rest, "/")):
	case strings.Contains(raw, "://"):
		return nil, errScheme
	default:
		return nil, errNoScheme
	}
	authority, tail := text, ""
	if i := strings.IndexAny(text, "/?#"); i >= 0 {
		authority, tail = text[:i], text[i:]
	}
	hosts := authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		hosts = authority[i+1:]
		if err := a.takeUser(authority[:i]); err != nil {
			return nil, err
		}
	}
	if strings.Contains(tail, "@") && (a.Kind != Socket || hosts != "") {
		return nil, ErrEscape
	}
	if a.Kind != Socket {
		if err := a.takeHosts(hosts); err != nil {
			return nil, err
		}
	}
	if err := a.takeTail(hosts, tail); err != nil {
		return nil, err
	}
	return a, nil
}

func (a *Address) takeTail(hosts, tail string) error {
	tail, fragment, _ := strings.Cut(tail, "#")
	path, query, _ := strings.Cut(tail, "?")
	switch {
	case fragment != "":
		return errFragment
	case a.Kind == Socket:
		return a.takeSocket(hosts, path, query)
	case a.Kind == Single && query != "":
		return errOptions
	}
	if err := a.takePath(path); err != nil {
		return err
	}
	return a.takeOptions(query)
}

func (a *Address) takeUser(text string) error {
	u, err := url.Parse("redis://" + text + "@host")
	if bad := url.EscapeError(""); errors.As(err, &bad) {
		return errPercent
	}
	if err != nil {
		return errUser
	}
	var given bool
	a.User = u.User.Username()
	a.Password, given = u.User.Password()
	a.UserOnly = a.User != "" && !given
	return nil
}

func (a *Address) takeHosts(text string) error {
	port := nodePort
	if a.Kind == Sentinels {
		port = sentinelPort
	}
	all := strings.Split(text, ",")
	if a.Kind == Single && len(all) > 1 {
		return errHosts
	}
	for _, one := range all {
		host, err := withPort(one, port)
		if err != nil {
			return err
		}
		a.Hosts = append(a.Hosts, host)
	}
	return nil
}

// withPort adds the default port if text does not have a port.
func withPort(text, port string) (string, error) {
	if strings.Count(text, ":") > 1 && text[0] != '[' {
		return "", errColons
	}
	if i := strings.LastIndexByte(text, ':'); i > strings.LastIndexByte(text, ']') {
		port = cmp.Or(text[i+1:], port)
		text = text[:i]
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", errPort
	}
	u, err := url.Parse("redis://" + text)
	if err != nil {
		return "", errHost
	}
	host := u.Hostname()
	_, zone, _ := strings.Cut(host, "%")
	switch {
	case strings.ContainsAny(host, "[]@/?#,"), // the zone of an IPv6 address may be escaped
		strings.ContainsFunc(zone, func(r rune) bool { return r > unicode.MaxASCII }): // net/url can't parse it escaped
		return "", errHost
	case host == "":
		return "", errNoHost
	}
	return net.JoinHostPort(host, port), nil
}

func (a *Address) takeSocket(host, path, query string) error {
	file, err := url.PathUnescape(path)
	_, after, _ := strings.Cut(file, ":")
	switch {
	case host != "":
		return errThree
	case path == "":
		return errNoPath
	case err != nil:
		return errPath
	case strings.Contains(after, "@"):
		return ErrEscape // the path contains part of a password
	}
	a.Path = file
	options, err := url.ParseQuery(query)
	if err != nil {
		return errQuery
	}
	for name, values := range options {
		if name != optDB || len(values) > 1 {
			return errSocketOpts
		}
	}
	if text := options.Get(optDB); text != "" {
		return a.takeDatabase(text)
	}
	return nil
}

func (a *Address) takeDatabase(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return errDatabase
	}
	a.DB = n
	return nil
}

func (a *Address) takePath(path string) error {
	text := strings.Trim(path, "/")
	switch {
	case a.Kind == Sentinels:
		return a.takeMaster(text)
	case a.Kind == Cluster && text != "" && text != "0":
		return errors.New("invalid address: a cluster has only database 0: remove the path")
	case text != "":
		return a.takeDatabase(text)
	}
	return nil
}

func (a *Address) takeMaster(path string) error {
	name, db, more := strings.Cut(path, "/")
	master, err := url.PathUnescape(name)
	odd := func(r rune) bool { return r == '@' || !unicode.IsGraphic(r) || unicode.IsSpace(r) }
	switch {
	case name == "":
		return errors.New("invalid address: missing master name: write redis-sentinel://host:26379/mymaster")
	case err != nil || strings.ContainsFunc(master, odd) || strings.Contains(db, "/"):
		return errors.New("invalid address: the path of an address of Sentinels is /master or /master/database")
	}
	a.Master = master
	if more {
		return a.takeDatabase(db)
	}
	return nil
}

func (a *Address) takeOptions(query string) error {
	options, err := url.ParseQuery(query)
	if err != nil {
		return errQuery
	}
	for name, values := range options {
		value := values[len(values)-1]
		switch {
		case name == optSentinelUser && a.Kind == Sentinels:
			a.SentinelUser = value
		case name == optSentinelPassword && a.Kind == Sentinels:
			a.SentinelPassword = value
		case name == optSharding && a.Kind == Cluster:
			if value != "auto" && value != "on" && value != "off" {
				return errors.New("invalid address: the option " + optSharding + " must be auto, on or off")
			}
			a.Sharding = value
		case a.Kind == Sentinels:
			return errors.New("invalid address: it has an option other than " + optSentinelUser + " or " + optSentinelPassword)
		default:
			return errors.New("invalid address: it has an option other than " + optSharding)
		}
	}
	if a.SentinelUser != "" && a.SentinelPassword == "" {
		return errors.New("invalid address: the option " + optSentinelUser + " needs " + optSentinelPassword)
	}
	return nil
}

var (
	errScheme = errors.New("invalid address: the scheme must be redis, rediss (TLS) or unix, " +
		"or redis or rediss with -cluster or -sentinel; valkey may replace redis")
	errNoScheme = errors.New("invalid address: the scheme is missing: write redis://host:port, " +
		"rediss://host:port for TLS, or unix:///path")
)

func schemeOf(name string) (*Address, bool) {
	a := &Address{}
	if name == "unix" {
		a.Kind = Socket
		return a, true
	}
	if base, found := strings.CutSuffix(name, "-cluster"); found {
		name, a.Kind = base, Cluster
	} else if base, found := strings.CutSuffix(name, "-sentinel"); found {
		name, a.Kind = base, Sentinels
	}
	a.Valkey = strings.HasPrefix(name, "valkey")
	a.Secure = name == "rediss" || name == "valkeys"
	return a, a.Secure || name == "redis" || name == "valkey"
}

// checkText rejects characters that were copied together with the address from a file or a command line.
func checkText(raw string) error {
	first, _ := utf8.DecodeRuneInString(raw)
	switch text := strings.TrimSpace(raw); {
	case text == "":
		return errors.New("invalid address: it is empty")
	case text != raw:
		return errors.New("invalid address: remove the white space around it, such as a newline at its end")
	case strings.ContainsRune("\"'`“”‘’", first):
		return errors.New("invalid address: remove the quotes around it")
	case strings.ContainsFunc(raw, unicode.IsControl):
		return errors.New("invalid address: it has a control character, such as a newline")
	}
	return nil
}
