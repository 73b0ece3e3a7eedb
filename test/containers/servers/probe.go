package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/client"
)

// probeTimeout bounds the whole probe. An engine on this machine answers in a few
// milliseconds.
const probeTimeout = 300 * time.Millisecond

// engine is a Docker engine that has answered.
type engine struct {
	host string // as in DOCKER_HOST
}

// sockets returns where an engine may listen, as in DOCKER_HOST, the likelier first: the
// one place that DOCKER_HOST names, else those of an engine of the system's, of the user's
// own (rootless), and of Docker Desktop.
func sockets() []string {
	if host := os.Getenv("DOCKER_HOST"); host != "" {
		return []string{host}
	}
	if runtime.GOOS == "windows" {
		return []string{"npipe:////./pipe/docker_engine"}
	}
	home, _ := os.UserHomeDir()
	own := os.Getenv("XDG_RUNTIME_DIR")
	if own == "" {
		own = filepath.Join("/run/user", strconv.Itoa(os.Getuid()))
	}
	return []string{
		"unix:///var/run/docker.sock",
		"unix://" + filepath.Join(own, "docker.sock"),
		"unix://" + filepath.Join(home, ".docker", "run", "docker.sock"),
		"unix://" + filepath.Join(home, ".docker", "desktop", "docker.sock"),
	}
}

// probe asks all hosts at once for a sign of life, and returns the first of the list that
// gives one, within probeTimeout.
func probe(ctx context.Context, hosts []string) (engine, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	answers := make([]chan error, len(hosts))
	for i, host := range hosts {
		answers[i] = make(chan error, 1)
		go func() { answers[i] <- alive(ctx, host) }() // ends with ctx
	}
	var absent []string
	var silent error
	for i, host := range hosts {
		err := <-answers[i]
		switch {
		case err == nil:
			return engine{host: host}, nil
		case errors.Is(err, os.ErrNotExist):
			absent = append(absent, host)
		case ctx.Err() != nil:
			silent = errors.Join(silent, fmt.Errorf("%s did not answer within %v", host, probeTimeout))
		default:
			silent = errors.Join(silent, fmt.Errorf("%s is no Docker engine that can be used: %w", host, err))
		}
	}
	if silent != nil {
		return engine{}, silent
	}
	return engine{}, fmt.Errorf("there is no socket of a Docker engine: %s", strings.Join(absent, ", "))
}

// alive asks the engine at host for a sign of life.
func alive(ctx context.Context, host string) error {
	if path, local := strings.CutPrefix(host, "unix://"); local {
		if _, err := os.Stat(path); err != nil {
			return err
		}
	}
	// With the keys of DOCKER_CERT_PATH, where DOCKER_TLS_VERIFY asks for them.
	c, err := client.New(client.WithTLSClientConfigFromEnv(), client.WithHost(host))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // one question was all
	pong, err := c.Ping(ctx, client.PingOptions{})
	if err == nil && pong.APIVersion == "" {
		return errors.New("it names no version of Docker's API")
	}
	return err
}
