// Package observability tests the files for Prometheus and Grafana in deploy:
//
//	rules and their tests       promtool, of Debian's package prometheus
//	expressions of panels       Prometheus' own parser; every metric is in the golden lists
//	panels over a real run      a Redis, clients, redlatch exporter, and a Prometheus that
//	                            scrapes both: every panel has data, every rule is healthy
//
// The golden lists are docs/observability/metrics.txt and docs/observability/exporter.txt. The real
// run also draws the image of docs/observability.md: make pictures.
package observability

import (
	"context"
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
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// find returns the path of a program in Debian's package prometheus. It searches PATH and the folder of
// scripts/prometheus.sh. If the program is not found, the test is skipped, or fails in CI.
func find(t *testing.T, name string) string {
	t.Helper()
	kept, err := filepath.Abs(filepath.Join(root, ".servers", "prometheus", "usr", "bin", name))
	require.NoError(t, err)
	for _, path := range []string{name, kept} {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is neither in PATH nor at %s: run scripts/prometheus.sh", name, kept)
	}
	t.Skipf("NOT TESTED WITH PROMETHEUS: no %s in PATH or at %s: run scripts/prometheus.sh", name, kept)
	return ""
}

// promtool runs promtool in deploy/prometheus.
func promtool(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	cmd := exec.Command(find(t, "promtool"), args...)
	cmd.Dir = filepath.Join(root, "deploy", "prometheus")
	text, err := cmd.CombinedOutput()
	return string(text), err
}

type rules struct {
	Groups []struct {
		Rules []rule `yaml:"rules"`
	} `yaml:"groups"`
}

type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

type scenes struct {
	Tests []struct {
		Name  string `yaml:"name"`
		Tests []struct {
			Alert    string           `yaml:"alertname"`
			Expected []map[string]any `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	} `yaml:"tests"`
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "prometheus", file))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, into))
}

func alerts(t *testing.T) []rule {
	t.Helper()
	var r rules
	readYAML(t, "redlatch.rules.yml", &r)
	require.Len(t, r.Groups, 1)
	return r.Groups[0].Rules
}

func TestPromtoolAcceptsRulesAndConfig(t *testing.T) {
	t.Parallel()
	out, err := promtool(t, "check", "rules", "redlatch.rules.yml")
	require.NoError(t, err, out)
	out, err = promtool(t, "check", "config", "prometheus.yml")
	require.NoError(t, err, out)
}

func TestAlertsFireOnlyInTheirScenario(t *testing.T) {
	t.Parallel()
	out, err := promtool(t, "test", "rules", "redlatch.test.yml")
	require.NoError(t, err, out)
	var all scenes
	readYAML(t, "redlatch.test.yml", &all)
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, scene := range all.Tests {
		fired := map[string]bool{}
		for _, test := range scene.Tests {
			fired[test.Alert] = fired[test.Alert] || len(test.Expected) > 0
		}
		for alert, did := range fired {
			require.True(t, strings.HasPrefix(scene.Name, alert+" "), scene.Name)
			if did {
				fires[alert] = true
			} else {
				silent[alert] = true // in the whole scene
			}
		}
	}
	for _, r := range alerts(t) {
		require.True(t, fires[r.Alert], "%s never fires", r.Alert)
		require.True(t, silent[r.Alert], "%s is never silent", r.Alert)
	}
	require.Len(t, fires, 6)
}

func TestAlertsUseKnownMetricsAndLinkRunbook(t *testing.T) {
	t.Parallel()
	all := known(t)
	manual, err := os.ReadFile(filepath.Join(root, "docs", "operations.md"))
	require.NoError(t, err)
	headings := map[string]bool{}
	for line := range strings.Lines(string(manual)) {
		if text, is := strings.CutPrefix(strings.TrimSpace(line), "### "); is {
			headings[strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(text), ":", ""), " ", "-")] = true
		}
	}
	for _, r := range alerts(t) {
		require.Positive(t, checkExpr(t, all, r.Alert, r.Expr))
		section, is := strings.CutPrefix(r.Annotations["runbook_url"], "https://github.com/redlatch/redlatch/blob/main/docs/operations.md#")
		require.True(t, is, r.Alert)
		require.True(t, headings[section], "%s: section %s is missing in docs/operations.md", r.Alert, section)
		require.NotEmpty(t, r.Labels["severity"], r.Alert)
		require.NotEmpty(t, r.Annotations["summary"], r.Alert)
		require.Contains(t, string(manual), "`"+r.Alert+"`", "not in the manual")
	}
}

func TestMain(m *testing.M) { program.Main(m, become) }

// binaryEnv is the environment variable for the path of the redlatch binary.
const binaryEnv = "REDLATCH_TEST_BINARY"

// build builds redlatch, and returns the environment variable that makes package program run it.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "redlatch")
	cmd := exec.Command("go", "build", "-o", binary, "./cmd/redlatch")
	cmd.Dir = "../.." // redlatch's module
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, string(text))
	return binaryEnv + "=" + binary
}

// become replaces this process with redlatch. It returns only if that fails.
func become(_ context.Context, args []string, _ ...any) int {
	fmt.Fprintln(os.Stderr, syscall.Exec(os.Getenv(binaryEnv), append([]string{"redlatch"}, args...), os.Environ()))
	return 1
}

const (
	// scrapeEvery is the scrape interval of a run's Prometheus, and rateOver, four times as long,
	// the value of Grafana's $__rate_interval.
	scrapeEvery = 500 * time.Millisecond
	rateOver    = "2s"
)

// prometheus is a running Prometheus.
type prometheus struct {
	t    *testing.T
	base string
	from time.Time
}

// series is a series in a query's result.
type series struct {
	labels map[string]string
	points []point
}

type point struct {
	at    time.Time
	value float64
}

// startPrometheus starts a Prometheus that scrapes the targets, by job, and evaluates the alerts.
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
	}, atMost, 50*time.Millisecond, "Prometheus is not ready")
	// Prometheus finds its targets a few seconds after it has started.
	require.Eventually(t, func() bool { return len(p.overTime("up", time.Now())) > 1 }, atMost, 100*time.Millisecond)
	p.from = time.Now()
	return p
}

// get queries Prometheus and decodes the data of its reply.
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

// overTime returns an expression's values since the start of Prometheus.
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

// states returns the states of the alerts, and requires that each can be evaluated.
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
