package redlatchui

import (
	"net"
	"net/http"
	"slices"
	"strings"
)

// policy allows the page's own styles, script and stream only.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

var headers = map[string]string{
	"Content-Security-Policy":      policy,
	"Cache-Control":                "no-store",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "same-origin", // without it, browsers also hide the origin of the page's own forms
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cross-Origin-Embedder-Policy": "require-corp",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=()",
}

// local are the hosts that DNS cannot point elsewhere.
var local = []string{"localhost", "127.0.0.1", "::1"}

// guard passes requests to next that a browser makes for the page itself.
func guard(hosts []string, next http.Handler) http.Handler {
	allowed := slices.Clone(local)
	for _, h := range hosts {
		allowed = append(allowed, strings.ToLower(hostOf(h)))
	}
	forms := http.NewCrossOriginProtection()
	forms.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "Forms of other sites' pages do nothing here. A proxy in front must pass the host on.", http.StatusForbidden)
	}))
	next = forms.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		switch {
		case !slices.Contains(allowed, strings.ToLower(hostOf(r.Host))):
			http.Error(w, "This page is not served under that name. Add it with --host, or to Options.Hosts.", http.StatusMisdirectedRequest)
		case isForeign(r):
			http.Error(w, "Pages of other sites may link to this page, and no more.", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isForeign reports whether a page of another origin makes the request, except by a link.
func isForeign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
}

func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
}
