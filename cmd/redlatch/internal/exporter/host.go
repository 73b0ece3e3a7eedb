package exporter

import (
	"net"
	"net/http"
	"net/netip"

	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// onlyLocal prevents DNS rebinding: if the exporter can be reached from this machine only, it rejects
// requests for host names other than localhost and the one in --listen. An IP address cannot be rebound,
// and clients without a Host header are not browsers.
func onlyLocal(listens net.Addr, address string, next http.Handler) http.Handler {
	if tcp, is := listens.(*net.TCPAddr); !is || !tcp.IP.IsLoopback() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := sanitize.Host(r.Host)
		if _, err := netip.ParseAddr(host); err != nil && host != "" && host != "localhost" && host != sanitize.Host(address) {
			http.Error(w, "The exporter is not served under that host name: a proxy must send the Host header localhost.", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
