package redisurl

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	errScheme = errors.New("invalid address: the scheme must be redis, rediss (TLS) or unix, " +
		"or redis or rediss with -cluster or -sentinel; valkey may replace redis")
	errNoScheme = errors.New("invalid address: the scheme is missing: write redis://host:port, " +
		"rediss://host:port for TLS, or unix:///path")
	errStackExchange = errors.New("invalid address: it is a connection string of StackExchange.Redis: " +
		"write redis://[user]:password@host:port, and rediss:// for ssl=True")
	errQuotes = errors.New("invalid address: remove the quotes around it")
)

// schemeOf returns an address of the scheme's kind.
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

// theirs are schemes of other clients and programs, with what to write in their place.
var theirs = map[string]string{
	"redis+sentinel":  "redis-sentinel://host:26379/mymaster",
	"rediss+sentinel": "rediss-sentinel://host:26379/mymaster",
	"sentinel":        "redis-sentinel://host:26379/mymaster",
	"redis+cluster":   "redis-cluster://host:6379",
	"rediss+cluster":  "rediss-cluster://host:6379",
	"redis+tls":       "rediss://host:6379",
	"redis+ssl":       "rediss://host:6379",
	"tls":             "rediss://host:6379",
	"tcp":             "redis://host:6379",
	"redis+socket":    "unix:///path",
	"redis-socket":    "unix:///path",
	"redis+unix":      "unix:///path",
	"http":            "redis://host:6379",
	"https":           "redis://host:6379, or rediss://host:6379 for TLS",
}

// misread says what a text without a known scheme may be.
func misread(raw string) error {
	name, _, found := strings.Cut(raw, "://")
	if found {
		name = strings.Replace(strings.ToLower(name), "valkey", "redis", 1)
		if ours, known := theirs[name]; known {
			return fmt.Errorf("invalid address: unknown scheme: write %s", ours)
		}
		return errScheme
	}
	if isStackExchange(raw) {
		return errStackExchange
	}
	return errNoScheme
}

// isStackExchange reports whether text is like host:port,password=x,ssl=True.
func isStackExchange(text string) bool {
	_, settings, _ := strings.Cut(text, ",")
	return strings.Contains(settings, "=")
}

// checkText finds characters that come from the file or the command that the address was
// copied from.
func checkText(raw string) error {
	first, _ := utf8.DecodeRuneInString(raw)
	switch text := strings.TrimSpace(raw); {
	case text == "":
		return errors.New("invalid address: it is empty")
	case strings.HasSuffix(raw, text) && text != raw:
		return errors.New("invalid address: remove the white space before it")
	case text != raw:
		return fmt.Errorf("invalid address: remove the %s at its end", spaceName(raw[len(strings.TrimRightFunc(raw, unicode.IsSpace)):]))
	case strings.ContainsRune("\"'`“”‘’", first):
		return errQuotes
	case strings.ContainsFunc(raw, unicode.IsControl):
		return errors.New("invalid address: it has a control character, such as a newline")
	}
	return nil
}

// spaceName returns the name of what a text of white space begins with.
func spaceName(text string) string {
	switch text[0] {
	case '\r':
		return "carriage return"
	case '\n':
		return "newline"
	}
	return "space"
}
