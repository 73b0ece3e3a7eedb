package kubernetes

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// withAll are values that turn everything on.
const withAll = `
redis: {user: operator, caSecret: redis-ca}
pattern: app:*
args: [--every=30s]
ui: {auth: {existingSecret: page}, hosts: [locks.example.com], allow: [unlock, evict]}
exporter: {match: ["orders=app:orders:*", "billing=app:bill*"]}
serviceMonitor: {enabled: true, labels: {release: prometheus}}
networkPolicy: {redisPorts: [6379, 26379]}
podSpec: {nodeSelector: {disk: ssd}, imagePullSecrets: [{name: pull}]}
`

func TestManifestsMatchChart(t *testing.T) {
	t.Parallel()
	golden(t, base+"/redlatch.yaml", manifests(t, "redlatch", ""))
	rendered, err := render(t, "redlatch", "serviceMonitor: {enabled: true}")
	require.NoError(t, err)
	golden(t, base+"/monitoring/servicemonitor.yaml", strings.TrimSpace(rendered["servicemonitor.yaml"])+"\n")
}

// build returns the objects of a kustomization.
func build(t *testing.T, folder string) *set {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	require.NoError(t, err)
	text, err := built.AsYaml()
	require.NoError(t, err)
	return decode(t, string(text))
}

func TestKustomizationsBuild(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"Deployment redlatch-exporter", "Deployment redlatch-ui",
		"NetworkPolicy redlatch-exporter", "NetworkPolicy redlatch-ui", "Service redlatch-exporter",
	}, build(t, base).names())
	require.Equal(t, []string{"ServiceMonitor redlatch-exporter"}, build(t, base+"/monitoring").names())
}

func TestDocumentedOverlayChangesServer(t *testing.T) {
	t.Parallel()
	const remote = "https://github.com/redlatch/redlatch//deploy/kubernetes"
	text := block(t, "operations.md", "Kubernetes", "resources:\n")
	require.Equal(t, 2, strings.Count(text, remote))
	folder := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(folder, "deploy"), os.DirFS(base)))
	var local []string
	for line := range strings.Lines(text) {
		before, ref, _ := strings.Cut(line, "?ref=v")
		if strings.Contains(before, remote) {
			require.NotEmpty(t, ref)
			line = strings.Replace(before, remote, "deploy", 1) + "\n"
		}
		local = append(local, line)
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(strings.Join(local, "")), 0o600))
	s := build(t, folder)
	require.Len(t, s.monitors, 1)
	for name, d := range s.deployments {
		pod := d.Spec.Template.Spec
		require.Equal(t, "rediss://redis.example.com:6379", pod.Containers[0].Env[0].Value, name)
		require.Contains(t, pod.Containers[0].Args, "--tls-ca="+pod.Containers[0].VolumeMounts[0].MountPath+"/ca.crt")
		require.Contains(t, pod.Volumes[0].Secret.Items, core.KeyToPath{Key: "ca.crt", Path: "ca.crt"})
	}
}

func TestPodsAreRestricted(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]string{"defaults": "", "all": withAll} {
		s := decode(t, manifests(t, "redlatch", values))
		require.Len(t, s.deployments, 2)
		for _, d := range s.deployments {
			pod := d.Spec.Template.Spec
			require.False(t, *pod.AutomountServiceAccountToken, name)
			require.False(t, *pod.EnableServiceLinks, name)
			require.True(t, *pod.SecurityContext.RunAsNonRoot, name)
			require.Equal(t, []int64{65532, 65532, 65532},
				[]int64{*pod.SecurityContext.RunAsUser, *pod.SecurityContext.RunAsGroup, *pod.SecurityContext.FSGroup})
			require.Equal(t, core.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type)
			c := pod.Containers[0]
			require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
			require.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
			require.Equal(t, []core.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
			require.Equal(t, "192Mi", c.Resources.Limits.Memory().String())
			require.Equal(t, "10m", c.Resources.Requests.Cpu().String())
			for i, m := range c.VolumeMounts {
				require.True(t, m.ReadOnly)
				require.Equal(t, pod.Volumes[i].Name, m.Name)
				require.Equal(t, int32(0o440), *pod.Volumes[i].Secret.DefaultMode)
			}
		}
	}
}

func TestObjectsSelectEachOther(t *testing.T) {
	t.Parallel()
	// "1e3" and "123" are numbers in YAML unless they are quoted.
	for _, release := range []string{"redlatch", "1e3", "123", strings.Repeat("a", 53), "redlatch" + strings.Repeat("a", 45)} {
		s := decode(t, manifests(t, release, withAll))
		require.Len(t, s.services, 2, release)
		for name, service := range s.services {
			require.LessOrEqual(t, len(name), 63)
			d := s.deployments[name]
			pod := d.Spec.Template
			require.Equal(t, service.Spec.Selector, d.Spec.Selector.MatchLabels)
			require.Equal(t, service.Spec.Selector, pod.Labels)
			require.Equal(t, service.Spec.Selector, s.policies[name].Spec.PodSelector.MatchLabels)
			require.Equal(t, release, pod.Labels["app.kubernetes.io/instance"])
			port, c := service.Spec.Ports[0], pod.Spec.Containers[0]
			require.Equal(t, intstr.FromString(c.Ports[0].Name), port.TargetPort)
			require.Equal(t, c.Ports[0].ContainerPort, port.Port)
			require.Equal(t, port.Port, s.policies[name].Spec.Ingress[0].Ports[0].Port.IntVal)
		}
		for name, service := range s.services {
			require.Equal(t, strings.HasSuffix(name, "-exporter"), service.Spec.PublishNotReadyAddresses, "Prometheus must see redlatch_exporter_up 0")
		}
		for name, m := range s.monitors {
			require.Equal(t, s.services[name].Labels, m.Spec.Selector.MatchLabels)
			require.Equal(t, s.services[name].Spec.Ports[0].Name, m.Spec.Endpoints[0].Port)
			require.Equal(t, "prometheus", m.Labels["release"])
		}
	}
}

func TestPageWithoutPasswordsIsUnreachable(t *testing.T) {
	t.Parallel()
	s := decode(t, manifests(t, "redlatch", ""))
	c := s.deployments["redlatch-ui"].Spec.Template.Spec.Containers[0]
	require.Contains(t, c.Args, "--addr=127.0.0.1:8374")
	require.Empty(t, c.Ports)
	require.NotContains(t, s.services, "redlatch-ui")
	require.Empty(t, s.policies["redlatch-ui"].Spec.Ingress)
}

func TestPoliciesAllowRedisAndDNSOnly(t *testing.T) {
	t.Parallel()
	for name, policy := range decode(t, manifests(t, "redlatch", withAll)).policies {
		var ports []int32
		for _, rule := range policy.Spec.Egress {
			for _, p := range rule.Ports {
				ports = append(ports, p.Port.IntVal)
			}
		}
		require.Equal(t, []int32{53, 53, 6379, 26379}, ports, name)
		require.Len(t, policy.Spec.PolicyTypes, 2, name)
	}
}

func TestPartsCanBeDisabled(t *testing.T) {
	t.Parallel()
	for values, want := range map[string][]string{
		"ui: {enabled: false}\nnetworkPolicy: {enabled: false}": {"Deployment redlatch-exporter", "Service redlatch-exporter"},
		"exporter: {enabled: false}":                            {"Deployment redlatch-ui", "NetworkPolicy redlatch-ui"},
	} {
		require.Equal(t, want, decode(t, manifests(t, "redlatch", values)).names())
	}
}

func TestHostileValuesStayArguments(t *testing.T) {
	t.Parallel()
	const hostile = "a\"b'c: {{ .Values }} {{ fail \"x\" }}\\n\n- x\n# $(REDIS_URL) $$ <b> \u202e \x1b[31m & *"
	quoted := `"a\"b'c: {{ .Values }} {{ fail \"x\" }}\\n\n- x\n# $(REDIS_URL) $$ <b> \u202e \u001b[31m & *"`
	s := decode(t, manifests(t, "redlatch", strings.NewReplacer("X", quoted).Replace(`
redis:
  user: X
  url: redis://a"b'{{x}}$(HOME)
pattern: X
ui: {auth: {existingSecret: page}, hosts: [X]}
serviceMonitor: {enabled: true, labels: {release: X}}
`)))
	expanded := func(text string) string { return strings.ReplaceAll(text, "$$", "$") }
	c := s.deployments["redlatch-ui"].Spec.Template.Spec.Containers[0]
	require.Equal(t, `redis://a"b'{{x}}$(HOME)`, expanded(c.Env[0].Value))
	require.NotRegexp(t, `(^|[^$])(\$\$)*\$\(`, c.Env[0].Value)
	for _, arg := range c.Args {
		require.NotRegexp(t, `(^|[^$])(\$\$)*\$\(`, arg, "Kubernetes would expand it")
	}
	for i, arg := range c.Args {
		c.Args[i] = expanded(arg)
	}
	require.Contains(t, c.Args, "--user="+hostile)
	require.Contains(t, c.Args, "--host="+hostile)
	require.Equal(t, []string{"--", hostile}, c.Args[len(c.Args)-2:])
	require.Equal(t, hostile, s.monitors["redlatch-exporter"].Labels["release"])
}

func TestInvalidValuesAreRejected(t *testing.T) {
	t.Parallel()
	for values, says := range map[string]string{
		"ui: {allow: [unlock]}":                                                         "ui.allow needs ui.auth.existingSecret",
		"ui: {allow: [unlock], auth: {existingSecret: page}}":                           "ui.allow needs a Redis user that may unlock or evict",
		"ui: {allow: [destroy], auth: {existingSecret: page}}\nredis: {user: operator}": "allow",
		"serviceMonitor: {enabled: true}\nexporter: {enabled: false}":                   "serviceMonitor.enabled needs exporter.enabled",
		"redis: {url: 'redis://:sesame@redis:6379'}":                                    "redis.url contains a password",
		"redis: {url: 'redis-sentinel://s1/m?sentinel_password=sesame'}":                "redis.url contains a password",
		"redis: {url: 'redis-sentinel://s1/m?db=1&sentinel_password=sesame'}":           "redis.url contains a password",
		"redis: {existingSecret: ''}":                                                   "redis.user needs redis.existingSecret",
		"ui: {auth: {existingSecret: page}}":                                            "ui.auth.existingSecret needs ui.hosts",
		"image: {tag: -1}":                                                              "tag",
		"image: {tag: '.1'}":                                                            "tag",
		"image: {tag: '@sha256:aa'}":                                                    "tag",
		"redis: {url: redis}":                                                           "url",
		"redis: {password: sesame}":                                                     "password",
		"exporter: {match: [orders]}":                                                   "match",
		"image: {repository: 'a\"\\n'}":                                                 "repository",
		"podSpec: {hostNetwork: true}":                                                  "hostNetwork",
		"redis: {existingSecret: 'a: b'}":                                               "existingSecret",
		"args: ['app:*']":                                                               "args",
		"networkPolicy: {redisPorts: [70000]}":                                          "redisPorts",
	} {
		_, err := render(t, "redlatch", values)
		require.ErrorContains(t, err, says, values)
	}
}

// A user pastes it.
func TestNotesShowDocumentedUser(t *testing.T) {
	t.Parallel()
	rendered, err := render(t, "redlatch", "")
	require.NoError(t, err)
	notes := rendered["NOTES.txt"]
	lines := strings.Split(notes, "\n")
	i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "  ACL SETUSER onlooker ") })
	require.Positive(t, i, notes)
	text, err := os.ReadFile(root + "/docs/operations.md")
	require.NoError(t, err)
	require.Contains(t, string(text), "\n"+strings.TrimSpace(lines[i])+"\n")
	require.Contains(t, notes, "kubectl -n locks create secret generic redlatch-redis --from-file=password=FILE\n")
	require.Contains(t, notes, "kubectl -n locks port-forward deploy/redlatch-ui 8374\n")
	require.Contains(t, notes, "redlatch-exporter.locks:9797/metrics")
}
