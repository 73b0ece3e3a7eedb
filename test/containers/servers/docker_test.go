package servers

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

// docker is an engine as far as its API goes that starting a container needs. Its
// containers are processes of this machine: images are whatever programs there are, and
// ports that are published lead where they lead. There is one for all tests, since what
// starts containers looks for an engine once.
type docker struct {
	host string

	mu      sync.Mutex // guards what follows
	created []*made    // all containers, in their order
}

// made is a container.
type made struct {
	Image      string
	Entrypoint []string
	Cmd        []string
	HostConfig struct {
		PortBindings map[string][]struct{ HostIP, HostPort string }
	}

	ports map[string]string // where they lead
	cmd   *exec.Cmd
	life  io.Closer   // ends it
	out   *transcript // what it prints
	ended chan struct{}
}

var theDocker *docker

func TestMain(m *testing.M) {
	code := beside(m)
	os.Exit(code)
}

// beside runs the tests next to the engine.
func beside(m *testing.M) int {
	dir, err := os.MkdirTemp("", "itest-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "docker.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		panic(err)
	}
	theDocker = &docker{host: "unix://" + path}
	server := &http.Server{Handler: theDocker.handler()}
	go func() { _ = server.Serve(l) }() // ends with the server
	defer func() { _ = server.Close() }()
	_ = os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true") // it has an image of its own
	return m.Run()
}

// transcript keeps what a container prints.
type transcript struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// newDocker returns the engine for a test that must not run in parallel with others, which
// sees what it publishes at host.
func newDocker(t *testing.T, host string) *docker {
	t.Helper()
	t.Setenv("TESTCONTAINERS_HOST_OVERRIDE", host)
	t.Setenv("DOCKER_HOST", theDocker.host)
	return theDocker
}

func (d *docker) handler() http.Handler {
	mux := http.NewServeMux()
	on := func(pattern string, status int, answer func(r *http.Request) any) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" /{version}"+path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			if reply := answer(r); reply != nil {
				_ = json.NewEncoder(w).Encode(reply)
			}
		})
	}
	type object = map[string]any
	mux.HandleFunc("/_ping", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Api-Version", "1.51") })
	on("GET /info", http.StatusOK, func(*http.Request) any { return object{"ServerVersion": "test"} })
	on("GET /images/{name...}", http.StatusOK, func(*http.Request) any { return object{"Id": "image", "Config": object{}} })
	on("GET /networks", http.StatusOK, func(*http.Request) any { return []object{{"Name": "bridge", "Id": "bridge"}} })
	on("POST /containers/create", http.StatusCreated, func(r *http.Request) any { return object{"Id": d.create(r)} })
	on("POST /containers/{id}/start", http.StatusNoContent, func(r *http.Request) any { d.find(r).start(); return nil })
	on("POST /containers/{id}/stop", http.StatusNoContent, func(r *http.Request) any { d.find(r).end(); return nil })
	on("DELETE /containers/{id}", http.StatusNoContent, func(*http.Request) any { return nil })
	on("GET /containers/{id}/json", http.StatusOK, func(r *http.Request) any { return d.find(r).inspect() })
	mux.HandleFunc("GET /{version}/containers/{id}/logs", func(w http.ResponseWriter, r *http.Request) {
		text := d.find(r).out.String()
		header := make([]byte, 8)
		header[0] = 1 // what follows was printed to the standard output
		binary.BigEndian.PutUint32(header[4:], uint32(len(text)))
		_, _ = w.Write(append(header, text...))
	})
	return mux
}

func (d *docker) create(r *http.Request) (id string) {
	c := &made{ports: map[string]string{}, out: &transcript{}}
	if err := json.NewDecoder(r.Body).Decode(c); err != nil {
		panic(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.created = append(d.created, c)
	return fmt.Sprintf("c%011d", len(d.created)-1)
}

func (d *docker) find(r *http.Request) *made {
	n, err := strconv.Atoi(strings.TrimPrefix(r.PathValue("id"), "c"))
	if err != nil {
		panic(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.created[n]
}

// last returns the container that was created last.
func (d *docker) last() *made {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.created[len(d.created)-1]
}

// command is what the container runs, where published ports lead to. They are not reachable
// from outside of this machine.
func (c *made) command() []string {
	command := slices.Concat(c.Entrypoint, c.Cmd)
	for port, to := range c.HostConfig.PortBindings {
		inside := strings.TrimSuffix(port, "/tcp")
		outside := to[0].HostPort
		if outside == "0" {
			outside = strconv.Itoa(redistest.FreePort())
			command[slices.Index(command, inside)] = outside
		}
		c.ports[port] = outside
	}
	for i, arg := range command {
		if arg == "0.0.0.0" {
			command[i] = "127.0.0.1"
		}
	}
	return command
}

// start runs the container, which does not outlive this process.
func (c *made) start() {
	c.cmd = exec.Command("sh", append([]string{"-c", `"$@" & p=$!; cat >/dev/null; kill $p; wait $p`, "sh"}, c.command()...)...)
	c.cmd.Stdout, c.cmd.Stderr = c.out, c.out
	life, err := c.cmd.StdinPipe()
	if err != nil {
		panic(err)
	}
	c.life, c.ended = life, make(chan struct{})
	if err := c.cmd.Start(); err != nil {
		panic(err)
	}
	go func() { // ends with the container
		defer close(c.ended)
		_ = c.cmd.Wait() // what went wrong is in what it printed
	}()
}

func (c *made) end() {
	_ = c.life.Close()
	<-c.ended
}

func (c *made) inspect() any {
	type object = map[string]any
	ports := object{}
	for port, to := range c.ports {
		ports[port] = []object{{"HostIp": "127.0.0.1", "HostPort": to}}
	}
	return object{
		"Id": "c", "Name": "/c", "Image": "image", "Config": object{"Image": c.Image},
		"State":           object{"Status": "running", "Running": true},
		"HostConfig":      object{"NetworkMode": "bridge"},
		"NetworkSettings": object{"Ports": ports, "Networks": object{}},
	}
}

func TestAServerInAContainer(t *testing.T) {
	d := newDocker(t, "localhost")
	s := imageKind("redis:7.2").Start(t)
	c := d.last()
	require.Equal(t, "redis:7.2", c.Image)
	require.Equal(t, "redis-server", c.Entrypoint[0])
	require.Equal(t, "127.0.0.1:"+c.ports["6379/tcp"], s.Addr)
	require.Regexp(t, `^redis \d+\.\d+`, s.Version)
}

func TestAClusterInAContainer(t *testing.T) {
	d := newDocker(t, "127.0.0.1")
	cluster := imageKind("redis:7.2").StartCluster(t)
	require.Len(t, cluster.Masters, 3)
	require.True(t, cluster.Sharded)
	c := d.last()
	require.Len(t, c.HostConfig.PortBindings, len(cluster.Nodes))
	for _, node := range cluster.Nodes {
		_, port, _ := net.SplitHostPort(node.Addr)
		to := c.HostConfig.PortBindings[port+"/tcp"]
		require.Len(t, to, 1, node.Addr)
		require.Equal(t, port, to[0].HostPort, "a node is published as what it calls itself")
		require.Equal(t, "127.0.0.1", to[0].HostIP)
	}
	cluster.Do(t, "key", "SET", "key", "value")
}

func TestAClusterThatNamesOtherAddressesIsRefused(t *testing.T) {
	t.Parallel()
	var outside []string
	for _, addr := range redistest.StartCluster(t, 3, 1).Addrs() {
		outside = append(outside, redistest.NewProxy(t, addr).Addr())
	}
	_, err := survey(t, outside)
	require.ErrorContains(t, err, "sends clients to 127.0.0.1:")
}
