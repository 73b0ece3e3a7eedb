package observability

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

const (
	// scrapeEvery is how often the Prometheus of a run scrapes, and rateOver what Grafana
	// would fill $__rate_interval in with: four times as long.
	scrapeEvery = 500 * time.Millisecond
	rateOver    = "2s"
)

// prometheus is a Prometheus that runs.
type prometheus struct {
	t    *testing.T
	base string
	from time.Time
}

// series is a series that a query has found.
type series struct {
	labels map[string]string
	points []point
}

type point struct {
	at    time.Time
	value float64
}

// startPrometheus starts one that scrapes the targets, by job, and evaluates the alerts.
func startPrometheus(t *testing.T, targets map[string][]string) *prometheus {
	t.Helper()
	binary, dir := find(t, "prometheus"), t.TempDir()
	alerts, err := filepath.Abs(filepath.Join(root, "deploy", "prometheus", "redlatch.rules.yml"))
	require.NoError(t, err)
	config := fmt.Sprintf("global: {scrape_interval: %v, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs:\n", scrapeEvery, alerts)
	for job, addresses := range targets {
		config += fmt.Sprintf("  - {job_name: %q, static_configs: [{targets: [%q]}]}\n", job, strings.Join(addresses, `","`))
	}
	config = strings.ReplaceAll(config, `\"`, `"`)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600))
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(redistest.UnusedPort(t)))
	cmd := exec.Command(binary, "--config.file", filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path", filepath.Join(dir, "data"),
		"--web.listen-address", address, "--log.level", "warn")
	var said strings.Builder
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	p := &prometheus{t: t, base: "http://" + address, from: time.Now()}
	require.Eventually(t, func() bool {
		resp, err := http.Get(p.base + "/-/ready") //nolint:noctx // the test's own server
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, 20*time.Second, 50*time.Millisecond, "Prometheus does not start")
	// It finds its targets some seconds after it has begun.
	require.Eventually(t, func() bool { return len(p.overTime("up", time.Now())) > 1 }, 20*time.Second, 100*time.Millisecond)
	p.from = time.Now()
	return p
}

// get asks Prometheus, and decodes the data of its answer.
func (p *prometheus) get(path string, args url.Values, data any) {
	p.t.Helper()
	resp, err := http.Get(p.base + path + "?" + args.Encode()) //nolint:noctx // the test's own server
	require.NoError(p.t, err)
	defer func() { require.NoError(p.t, resp.Body.Close()) }()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	require.NoError(p.t, json.NewDecoder(resp.Body).Decode(&answer))
	require.Equal(p.t, "success", answer.Status, "%s %v: %s", path, args, answer.Error)
	require.NoError(p.t, json.Unmarshal(answer.Data, data))
}

// overTime returns what an expression was from when Prometheus was started until now.
func (p *prometheus) overTime(expr string, until time.Time) []series {
	p.t.Helper()
	var data struct {
		Result []struct {
			Metric map[string]string
			Values [][2]any
		}
	}
	seconds := func(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }
	p.get("/api/v1/query_range", url.Values{
		"query": {expr}, "start": {seconds(p.from)}, "end": {seconds(until)}, "step": {"0.5"},
	}, &data)
	var all []series
	for _, r := range data.Result {
		s := series{labels: r.Metric}
		for _, v := range r.Values {
			at, isNumber := v[0].(float64)
			text, isText := v[1].(string)
			require.True(p.t, isNumber && isText)
			value, err := strconv.ParseFloat(text, 64)
			require.NoError(p.t, err)
			s.points = append(s.points, point{time.UnixMilli(int64(at * 1000)), value})
		}
		all = append(all, s)
	}
	return all
}

// states returns the states of the alerts, and requires that each could be evaluated.
func (p *prometheus) states() map[string]string {
	p.t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct{ Name, State, Health, LastError string }
		}
	}
	p.get("/api/v1/rules", nil, &data)
	states := map[string]string{}
	for _, g := range data.Groups {
		for _, r := range g.Rules {
			require.Equal(p.t, "ok", r.Health, "%s: %s", r.Name, r.LastError)
			states[r.Name] = r.State
		}
	}
	return states
}
