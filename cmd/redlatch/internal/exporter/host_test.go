package exporter

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLocalExporterRejectsForeignHosts(t *testing.T) {
	t.Parallel()
	for listens, hosts := range map[string]map[string]int{
		"127.0.0.1": {
			"localhost": 200, "LocalHost:9797": 200, "127.0.0.1:9797": 200, "[::1]:9797": 200, "10.0.0.7": 200,
			"evil.example": 421, "evil.example:9797": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421, "": 200, "MyHost:9797": 200, "myhost": 200,
		},
		"::1":       {"evil.example": 421, "localhost": 200},
		"0.0.0.0":   {"metrics.example": 200},
		"192.0.2.1": {"metrics.example": 200},
	} {
		page := onlyLocal(&net.TCPAddr{IP: net.ParseIP(listens)}, "myhost:9797", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for host, want := range hosts {
			r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
			r.Host = host
			w := httptest.NewRecorder()
			page.ServeHTTP(w, r)
			require.Equal(t, want, w.Code, "%s: %s", listens, host)
		}
	}
}
