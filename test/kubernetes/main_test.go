// Package kubernetes tests the Helm chart, the kustomizations and the Kubernetes examples of the documentation
// without a cluster: it renders them with the libraries of Helm and kustomize, decodes the objects strictly as
// the API's types, and runs the containers' command lines.
package kubernetes

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

const (
	root  = "../.."
	chart = root + "/deploy/helm/redlatch"
	base  = root + "/deploy/kubernetes"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { redistest.Main(m) }

// values are a chart's values as YAML.
func render(t *testing.T, release, values string) (map[string]string, error) {
	t.Helper()
	loaded, err := loader.LoadDir(chart)
	require.NoError(t, err)
	given, err := chartutil.ReadValues([]byte(values))
	require.NoError(t, err)
	options := chartutil.ReleaseOptions{Name: release, Namespace: "locks", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(loaded, given, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Engine{Strict: true}.Render(loaded, all)
	named := map[string]string{}
	for name, text := range rendered {
		named[path.Base(name)] = text
	}
	return named, err
}

// manifests returns the objects of the chart as one text.
func manifests(t *testing.T, release, values string) string {
	t.Helper()
	rendered, err := render(t, release, values)
	require.NoError(t, err)
	var all []string
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if text := strings.TrimSpace(rendered[name]); text != "" && strings.HasSuffix(name, ".yaml") {
			all = append(all, text+"\n")
		}
	}
	return strings.Join(all, "---\n")
}

// serviceMonitor is the type of the Prometheus operator, as far as the chart uses it.
type serviceMonitor struct {
	meta.TypeMeta
	meta.ObjectMeta `json:"metadata"`

	Spec struct {
		Selector  meta.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port string `json:"port"`
		} `json:"endpoints"`
	} `json:"spec"`
}

// set is a number of objects by name.
type set struct {
	deployments map[string]apps.Deployment
	services    map[string]core.Service
	policies    map[string]networking.NetworkPolicy
	monitors    map[string]serviceMonitor
	jobs        map[string]batch.CronJob
}

func (s *set) names() (all []string) {
	for kind, names := range map[string][]string{
		"Deployment": slices.Collect(maps.Keys(s.deployments)), "Service": slices.Collect(maps.Keys(s.services)),
		"NetworkPolicy": slices.Collect(maps.Keys(s.policies)), "ServiceMonitor": slices.Collect(maps.Keys(s.monitors)),
		"CronJob": slices.Collect(maps.Keys(s.jobs)),
	} {
		for _, name := range names {
			all = append(all, kind+" "+name)
		}
	}
	slices.Sort(all)
	return all
}

// decode requires that text contains only known objects without unknown or duplicate fields.
func decode(t *testing.T, text string) *set {
	t.Helper()
	s := &set{
		map[string]apps.Deployment{}, map[string]core.Service{}, map[string]networking.NetworkPolicy{},
		map[string]serviceMonitor{}, map[string]batch.CronJob{},
	}
	for _, one := range regexp.MustCompile(`(?m)^---\n`).Split(text, -1) {
		var is meta.TypeMeta
		require.NoError(t, yaml.Unmarshal([]byte(one), &is), one)
		switch is.APIVersion + " " + is.Kind {
		case "apps/v1 Deployment":
			add(t, s.deployments, one, func(o *apps.Deployment) string { return o.Name })
		case "v1 Service":
			add(t, s.services, one, func(o *core.Service) string { return o.Name })
		case "networking.k8s.io/v1 NetworkPolicy":
			add(t, s.policies, one, func(o *networking.NetworkPolicy) string { return o.Name })
		case "monitoring.coreos.com/v1 ServiceMonitor":
			add(t, s.monitors, one, func(o *serviceMonitor) string { return o.Name })
		case "batch/v1 CronJob":
			add(t, s.jobs, one, func(o *batch.CronJob) string { return o.Name })
		default:
			t.Fatalf("unknown kind %s %s of\n%s", is.APIVersion, is.Kind, one)
		}
	}
	return s
}

func add[O any](t *testing.T, to map[string]O, text string, name func(*O) string) {
	t.Helper()
	exact, err := yaml.YAMLToJSONStrict([]byte(text))
	require.NoError(t, err, text)
	var o O
	d := json.NewDecoder(bytes.NewReader(exact))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&o), text)
	require.NotContains(t, to, name(&o), "two objects have this name")
	to[name(&o)] = o
}

// golden compares text with a file of the repository. With -update it writes the file.
func golden(t *testing.T, name, text string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err, "go test -update writes it")
	require.Equal(t, string(want), text, "go test -update writes it")
}

// block returns the code block below the heading of a page of docs that starts with a line.
func block(t *testing.T, page, heading, starts string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", page))
	require.NoError(t, err)
	_, below, found := strings.Cut(string(text), "\n## "+heading+"\n")
	require.True(t, found, "%s has no section %s", page, heading)
	below, _, _ = strings.Cut(below, "\n## ")
	_, code, found := strings.Cut(below, "```yaml\n"+starts)
	require.True(t, found, "%s has no block that starts with %q", page, starts)
	code, _, _ = strings.Cut(code, "```")
	return starts + code
}
