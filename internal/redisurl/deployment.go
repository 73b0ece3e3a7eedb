package redisurl

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// The ports of a node of a cluster and of a Sentinel, where the address says none.
const (
	nodePort     = "6379"
	sentinelPort = "26379"
)

// The options that an address may have.
const (
	optSharding         = "sharded_pubsub"
	optSentinelUser     = "sentinel_user"
	optSentinelPassword = "sentinel_password"
)

// deployments are the schemes of several servers that are one to their users.
var deployments = map[string]struct{ sentinel, secure bool }{
	"redis-cluster":   {},
	"rediss-cluster":  {secure: true},
	"redis-sentinel":  {sentinel: true},
	"rediss-sentinel": {sentinel: true, secure: true},
}

var errEscape = errors.New("the address is not a URL: what is special in its user or password must be escaped")

// Deployment is the address of a cluster, or of a master that Sentinels name, taken
// apart.
type Deployment struct {
	// Secure says that TLS is spoken, with Sentinels, too.
	Secure bool
	// User and Password are the credentials for the nodes or the master.
	User, Password string
	// Hosts are the addresses, host:port, of nodes or of Sentinels.
	Hosts []string
	// Master is what the Sentinels call it, "" for a cluster.
	Master string
	// DB is the number of the database, 0 for a cluster.
	DB int
	// SentinelUser and SentinelPassword are the credentials for the
	// Sentinels.
	SentinelUser, SentinelPassword string
	// Sharding says how messages are published in a cluster: auto, on, off or "".
	Sharding string
}

// IsDeployment reports whether an address has a scheme of a cluster or of Sentinels.
func IsDeployment(raw string) bool {
	scheme, _, ok := strings.Cut(raw, "://")
	_, known := deployments[strings.ToLower(scheme)]
	return ok && known
}

// ParseDeployment takes an address apart for which IsDeployment is true. Its errors
// repeat nothing of it: what was mistyped may be a part of the password.
func ParseDeployment(raw string) (*Deployment, error) {
	if len(raw) > Longest {
		return nil, fmt.Errorf("an address of %d bytes", len(raw))
	}
	scheme, rest, _ := strings.Cut(raw, "://")
	kind := deployments[strings.ToLower(scheme)]
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	user, hosts := "", authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, hosts = authority[:i+1], authority[i+1:]
	}
	d, port := &Deployment{Secure: kind.secure}, nodePort
	if kind.sentinel {
		port = sentinelPort
	}
	var u *url.URL
	for host := range strings.SplitSeq(hosts, ",") {
		var err error
		// URLs have one host each.
		if u, err = url.Parse("redis://" + user + host + tail); err != nil {
			return nil, errors.New("the address is not a URL")
		}
		switch {
		case Misplaced(u) || u.Fragment != "":
			return nil, errEscape
		case u.Hostname() == "":
			return nil, errors.New("the address lacks a host")
		}
		d.Hosts = append(d.Hosts, net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port)))
	}
	d.User = u.User.Username()
	d.Password, _ = u.User.Password()
	if err := d.takePath(u.EscapedPath(), kind.sentinel); err != nil {
		return nil, err
	}
	return d, d.takeOptions(u.RawQuery)
}

// takePath reads the path of an address.
func (d *Deployment) takePath(path string, sentinel bool) error {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if !sentinel {
		if len(parts) > 1 || parts[0] != "" && parts[0] != "0" {
			return errors.New("a cluster has no database but 0: leave the path out of the address")
		}
		return nil
	}
	master, err := url.PathUnescape(parts[0])
	odd := func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }
	switch {
	case master == "":
		return errors.New("the address names no master: redis-sentinel://host:26379/mymaster")
	case err != nil || strings.ContainsFunc(master, odd) || len(parts) > 2:
		return errors.New("the path of an address of Sentinels is /master or /master/database")
	}
	d.Master = master
	if len(parts) == 2 {
		if d.DB, err = strconv.Atoi(parts[1]); err != nil || d.DB < 0 {
			return errors.New("the database in the address is no number")
		}
	}
	return nil
}

// takeOptions reads the options of an address.
func (d *Deployment) takeOptions(query string) error {
	options, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("the options in the address cannot be read: what is special in them must be escaped")
	}
	for name, values := range options {
		value := values[len(values)-1]
		switch {
		case name == optSentinelUser && d.Master != "":
			d.SentinelUser = value
		case name == optSentinelPassword && d.Master != "":
			d.SentinelPassword = value
		case name == optSharding && d.Master == "":
			if value != "auto" && value != "on" && value != "off" {
				return errors.New("the option " + optSharding + " in the address must be auto, on or off")
			}
			d.Sharding = value
		case d.Master != "":
			return errors.New("the address has an option that is neither " + optSentinelUser + " nor " + optSentinelPassword)
		default:
			return errors.New("the address has an option that is not " + optSharding)
		}
	}
	if d.SentinelUser != "" && d.SentinelPassword == "" {
		return errors.New("the option " + optSentinelUser + " in the address needs " + optSentinelPassword)
	}
	return nil
}

// String returns what may be shown: the addresses without credentials.
func (d *Deployment) String() string { return d.with("", "") }

// Full returns the whole address, password and all.
func (d *Deployment) Full() string {
	who := ""
	switch {
	case d.Password != "":
		who = url.UserPassword(d.User, d.Password).String() + "@"
	case d.User != "":
		who = url.User(d.User).String() + "@"
	}
	options := url.Values{}
	for name, value := range map[string]string{
		optSharding: d.Sharding, optSentinelUser: d.SentinelUser, optSentinelPassword: d.SentinelPassword,
	} {
		if value != "" {
			options.Set(name, value)
		}
	}
	if len(options) == 0 {
		return d.with(who, "")
	}
	return d.with(who, "?"+options.Encode())
}

// with returns the address with these parts.
func (d *Deployment) with(who, options string) string {
	scheme, path := "redis", ""
	if d.Secure {
		scheme = "rediss"
	}
	switch {
	case d.Master == "":
		scheme += "-cluster"
	case d.DB == 0:
		scheme, path = scheme+"-sentinel", "/"+url.PathEscape(d.Master)
	default:
		scheme, path = scheme+"-sentinel", "/"+url.PathEscape(d.Master)+"/"+strconv.Itoa(d.DB)
	}
	return scheme + "://" + who + strings.Join(d.Hosts, ",") + path + options
}
