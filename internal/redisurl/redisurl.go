// Package redisurl says what may be shown of a server's address, which has a password
// in it as a rule: the scheme, the host and the path of one that is well formed, and
// nothing at all of any other. It takes the addresses of clusters and of Sentinels apart,
// which have several hosts and so are no URLs. It is pure.
package redisurl

import (
	"net/url"
	"strings"
)

const (
	// hidden stands for an address of which nothing may be shown.
	hidden = "the given address"
	// most bounds how much of an address is shown, in bytes.
	most = 200
	// Longest is more bytes than any address needs: what the system says of it repeats
	// it.
	Longest = 4096
)

// Show returns what may be shown of an address, 203 bytes at most.
func Show(rawURL string) string {
	if IsDeployment(rawURL) {
		d, err := ParseDeployment(rawURL)
		if err != nil {
			return hidden
		}
		return cut(d.String())
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		return hidden
	}
	return ShowURL(u)
}

// ShowURL is [Show] for the address of one server that was taken apart.
func ShowURL(u *url.URL) string {
	known := u.Scheme == "unix" || (u.Scheme == "redis" || u.Scheme == "rediss") && u.Host != ""
	if !known || u.Opaque != "" || Misplaced(u) {
		return hidden
	}
	return cut((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String())
}

// cut shortens an address. It is escaped: any byte is a place to cut at.
func cut(text string) string {
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}

// Misplaced reports whether a part of the user or the password may stand where none
// should, as happens when the @ is forgotten, a slash is one too many, or one is not
// escaped.
func Misplaced(u *url.URL) bool {
	if u.Scheme == "unix" {
		_, after, _ := strings.Cut(u.Path, ":")
		return u.Host != "" || strings.Contains(after, "@")
	}
	if strings.Count(u.Host, ":") > 1 && !strings.HasPrefix(u.Host, "[") {
		return true
	}
	return strings.Contains(u.Path+u.RawQuery+u.Fragment, "@")
}
