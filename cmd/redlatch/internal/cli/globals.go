package cli

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/internal/redisurl"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

const (
	defaultRedis = "redis://127.0.0.1:6379"
	urlEnv       = "REDIS_URL"
	passwordEnv  = "REDIS_PASSWORD"
)

// Globals are the flags that all commands share: the server's address and credentials.
type Globals struct {
	// Redis is the value of --redis.
	Redis string

	user, passwordFile string
	tls                connect.TLS
}

// register adds the flags. Their defaults omit the environment: help would print REDIS_URL. There
// is no flag for a password: all users of a machine can read the arguments of its processes.
func (g *Globals) register(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&g.Redis, "redis", "",
		"server: redis://host[:port][/db], rediss:// or unix:///path, redis-cluster://host[:port],... or redis-sentinel://host[:port],.../master (default: the variable REDIS_URL, else "+defaultRedis+")")
	f.StringVar(&g.user, "user", "", "user; the password is in REDIS_PASSWORD")
	f.StringVar(&g.passwordFile, "password-file", "", "file with the password")
	f.BoolVar(&g.tls.On, "tls", false, "encrypt, as rediss:// does")
	f.StringVar(&g.tls.CA, "tls-ca", "", "PEM file of the certificate authorities")
	f.StringVar(&g.tls.Cert, "tls-cert", "", "PEM file of the client's certificate")
	f.StringVar(&g.tls.Key, "tls-key", "", "PEM file of its key")
	f.StringVar(&g.tls.ServerName, "tls-server-name", "", "name in the server's certificate")
	f.BoolVar(&g.tls.Insecure, "tls-insecure-skip-verify", false, "accept any certificate")
	CompleteFiles(root, "password-file", "tls-ca", "tls-cert", "tls-key")
}

// Server returns the server that flags and environment name. Its errors have [CodeUsage].
func (g *Globals) Server() (*connect.Server, error) {
	set, err := g.Settings()
	if err != nil {
		return nil, err
	}
	return ServerOf(set)
}

// ServerOf returns the server that set describes. Its errors have [CodeUsage].
func ServerOf(set connect.Settings) (*connect.Server, error) {
	srv, err := connect.New(set)
	if err != nil {
		return nil, &ExitError{Code: CodeUsage, Err: err}
	}
	return srv, nil
}

// Target returns the address without its password.
func (g *Globals) Target() string { return redisurl.Show(g.url()) }

// Settings reads flags, environment and password file. It may print a warning: call it once. Its
// errors have [CodeUsage].
func (g *Globals) Settings() (connect.Settings, error) {
	set := connect.Settings{Address: g.url(), User: g.user, TLS: g.tls}
	if g.Redis != "" && connect.Shows(g.Redis) {
		Messagef(os.Stderr, "warning: all users of this machine can read the password in --redis; "+
			"put it in "+passwordEnv+", or in a file for --password-file")
	}
	switch {
	case g.passwordFile != "":
		text, err := os.ReadFile(g.passwordFile)
		if err != nil {
			return connect.Settings{}, Usagef("--password-file: %w", err)
		}
		set.Password = strings.TrimRight(string(text), "\r\n")
		if set.Password == "" {
			return connect.Settings{}, Usagef("--password-file: %s has no password in it", g.passwordFile)
		}
	case !connect.HasPassword(set.Address):
		set.Password = os.Getenv(passwordEnv)
	}
	return set, nil
}

func (g *Globals) url() string {
	if g.Redis != "" {
		return g.Redis
	}
	if env := os.Getenv(urlEnv); env != "" {
		return env
	}
	return defaultRedis
}
