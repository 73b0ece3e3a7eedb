package observability

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// find returns the path of a program of Debian's package prometheus: from PATH, or from where
// scripts/prometheus.sh keeps it. A test without it is skipped, on a CI machine it fails.
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
	t.Skipf("NOT CHECKED WITH PROMETHEUS: no %s in PATH or at %s: run scripts/prometheus.sh", name, kept)
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

// rules are the alerts.
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

// scenes are the tests of the alerts.
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

func TestPromtoolTakesTheRulesAndTheConfiguration(t *testing.T) {
	t.Parallel()
	out, err := promtool(t, "check", "rules", "redlatch.rules.yml")
	require.NoError(t, err, out)
	out, err = promtool(t, "check", "config", "prometheus.yml")
	require.NoError(t, err, out)
}

func TestEveryAlertFiresInOneSceneAndIsSilentInAnother(t *testing.T) {
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
				silent[alert] = true // from beginning to end
			}
		}
	}
	for _, r := range alerts(t) {
		require.True(t, fires[r.Alert], "%s fires in no scene", r.Alert)
		require.True(t, silent[r.Alert], "%s is silent in no scene", r.Alert)
	}
	require.Len(t, fires, 5)
}

func TestEveryAlertIsOfKnownMetricsAndLeadsToTheRunbook(t *testing.T) {
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
		require.True(t, headings[section], "%s: docs/operations.md has no section %s", r.Alert, section)
		require.NotEmpty(t, r.Labels["severity"], r.Alert)
		require.NotEmpty(t, r.Annotations["summary"], r.Alert)
		require.Contains(t, string(manual), "`"+r.Alert+"`", "the manual does not name it")
	}
}
