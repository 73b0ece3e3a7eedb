package kubernetes

import (
	"bufio"
	"context"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

// atMost bounds each wait. It is not a claim about speed.
const atMost = time.Minute

// program builds the command.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "redlatch")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-C", root, "-buildvcs=false", "-o", path, "./cmd/redlatch").CombinedOutput()
	require.NoError(t, err, string(out))
	return path
}

// command returns the container's command line, with /etc/redlatch in a folder and ports that are free.
func command(t *testing.T, path string, c core.Container, folder, server string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), atMost)
	t.Cleanup(cancel)
	var args []string
	for _, arg := range c.Args {
		for _, addr := range []string{"127.0.0.1:8374", ":8374", ":9797"} {
			if strings.HasSuffix(arg, "="+addr) {
				arg = strings.TrimSuffix(arg, addr) + "127.0.0.1:0"
			}
		}
		args = append(args, strings.ReplaceAll(arg, "=/etc/redlatch/", "="+folder+"/"))
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = []string{"REDIS_URL=" + server, "PATH=" + os.Getenv("PATH")}
	return cmd
}

// start starts a program that serves HTTP, and returns its address.
func start(t *testing.T, cmd *exec.Cmd) *url.URL {
	t.Helper()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var said strings.Builder
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait() // exits with 130
	})
	if err != nil {
		_ = cmd.Wait()
		t.Fatalf("%v: %s", cmd.Args, said.String())
	}
	at, err := url.Parse(strings.TrimSpace(line))
	require.NoError(t, err)
	return at
}

// get sends a request for a host, as the kubelet or a browser would.
func get(t *testing.T, at *url.URL, path, host, user string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at.ResolveReference(&url.URL{Path: path}).String(), nil)
	require.NoError(t, err)
	r.Host, r.Close = host, true
	if user != "" {
		r.SetBasicAuth(user, "sesame")
	}
	got, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, got.Body.Close())
	return got.StatusCode
}

// Prometheus and the kubelet name the pod's address in their requests.
func TestContainersServeWithDocumentedUser(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	at, err := url.Parse(s.GiveLooks(t))
	require.NoError(t, err)
	password, _ := at.User.Password()
	folder := t.TempDir()
	for name, text := range map[string]string{"redis/password": password + "\n", "ui/ui.auth": "ann:sesame\n"} {
		name = filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	container := func(values, component string) core.Container {
		return decode(t, manifests(t, "redlatch", values)).deployments["redlatch-"+component].Spec.Template.Spec.Containers[0]
	}
	const values = "exporter: {match: ['orders=app:orders:*']}\nui: {auth: {existingSecret: page}, hosts: [locks.example.com]}\n" +
		"pattern: app:*\nargs: [--every=30s]"
	server, path := "redis://"+at.Host, program(t)

	c := container(values, "exporter")
	exporter := start(t, command(t, path, c, folder, server))
	require.Equal(t, "metrics", c.ReadinessProbe.HTTPGet.Port.StrVal)
	require.Eventually(t, func() bool {
		return get(t, exporter, c.ReadinessProbe.HTTPGet.Path, "10.1.2.3:9797", "") == http.StatusOK
	},
		atMost, 50*time.Millisecond)
	require.Equal(t, http.StatusOK, get(t, exporter, "/metrics", "10.1.2.3:9797", ""))

	forwarded := start(t, command(t, path, container("", "ui"), folder, server))
	require.Equal(t, http.StatusOK, get(t, forwarded, "/", "localhost:8374", ""))

	c = container(values, "ui")
	page := start(t, command(t, path, c, folder, server))
	require.Equal(t, http.StatusOK, get(t, page, "/", "locks.example.com", "ann"))
	require.Equal(t, http.StatusUnauthorized, get(t, page, "/", "locks.example.com", ""))
	require.Equal(t, http.StatusMisdirectedRequest, get(t, page, "/", "10.1.2.3:8374", "ann"))
	require.NotNil(t, c.ReadinessProbe.TCPSocket, "the page would reject an HTTP probe")
}

func TestDocumentedCronJobRunsOnce(t *testing.T) {
	t.Parallel()
	jobs := decode(t, block(t, "shell.md", "Kubernetes CronJob", "apiVersion: batch/v1")).jobs
	job := jobs["report"].Spec.JobTemplate.Spec
	require.Equal(t, int32(3), *job.Parallelism)
	require.Equal(t, *job.Parallelism, *job.Completions)
	pod := job.Template
	require.Equal(t, pod.Labels, pod.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels)
	require.Equal(t, core.RestartPolicyNever, pod.Spec.RestartPolicy, "podFailurePolicy requires it")
	c := pod.Spec.Containers[0]
	require.Equal(t, []string{"redlatch"}, c.Command)
	for i, arg := range c.Args {
		c.Args[i] = strings.ReplaceAll(arg, "$(JOB_NAME)", "report-29000000")
	}
	require.Equal(t, "./report.sh", c.Args[len(c.Args)-1])
	c.Args[len(c.Args)-1] = "true"
	server, path := "redis://"+redistest.Start(t).Addr(), program(t)
	require.NoError(t, command(t, path, c, "", server).Run())
	c.Args = append([]string{"run", "--try"}, c.Args[1:]...)
	var failed *exec.ExitError
	require.ErrorAs(t, command(t, path, c, "", server).Run(), &failed)
	require.Equal(t, 124, failed.ExitCode(), "the lock is kept")
}
