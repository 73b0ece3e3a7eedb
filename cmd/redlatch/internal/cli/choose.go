package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli/config"
	"github.com/redlatch/redlatch/internal/redisurl"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

const (
	defaultRedis = "redis://127.0.0.1:6379"
	urlEnv       = "REDIS_URL"
	contextEnv   = "REDLATCH_CONTEXT"
	redisFlag    = "redis"
	contextFlag  = "context"

	// FromCurrent is the source of a server that redlatch context use selected.
	FromCurrent = "current context"
)

// Chosen is the server that flags, environment and config file name.
type Chosen struct {
	config.Context
	Name string
	// From is the flag, variable or default that named the server.
	From string

	// ownUser is whether --user is given. REDIS_PASSWORD belongs to it, or to an address, but not to a context.
	ownUser bool
	// ownTLS is whether the server is encrypted without --tls flags.
	ownTLS bool
}

// Password says where the password comes from, or returns "" if there is none.
func (c *Chosen) Password() string {
	switch {
	case c.PasswordFile != "":
		return "file " + c.PasswordFile
	case len(c.PasswordCommand) > 0:
		return "command " + c.PasswordCommand[0]
	case connect.HasPassword(c.Redis):
		return "in the address"
	case c.environmentPassword() != "":
		return passwordEnv
	}
	return ""
}

// shows reports whether the address has a password.
func (c *Chosen) shows() bool { return connect.Shows(c.Redis, c.Password() != "") }

func (c *Chosen) environmentPassword() string {
	if c.Name != "" && !c.ownUser {
		return ""
	}
	return os.Getenv(passwordEnv)
}

// as replaces the context's user, whose password is not that of another user.
func (c *Chosen) as(user string) {
	if user == "" {
		return
	}
	old := c.User
	if address, err := redisurl.Parse(c.Redis); err == nil {
		old = cmp.Or(old, address.User)
	}
	if old != user {
		c.PasswordFile, c.PasswordCommand = "", nil
	}
	c.User, c.ownUser = user, true
}

// Choose returns the server to use. It is named by a flag, or else by REDLATCH_CONTEXT, REDIS_URL or the config file,
// in this order, because other programs share REDIS_URL and other terminals may change the file. A context's
// credentials are never sent to another address. Its errors have [CodeUsage].
func (g *Globals) Choose() (*Chosen, error) {
	if g.chosen != nil {
		return g.chosen, nil
	}
	c, err := g.choose()
	if err != nil {
		return nil, &ExitError{Code: CodeUsage, Err: err}
	}
	c.as(g.user)
	c.ownTLS = c.encrypted()
	c.CA, c.Cert, c.Key = cmp.Or(g.tls.CA, c.CA), cmp.Or(g.tls.Cert, c.Cert), cmp.Or(g.tls.Key, c.Key)
	c.ServerName = cmp.Or(g.tls.ServerName, c.ServerName)
	if g.given("tls-insecure-skip-verify") {
		c.Insecure = g.tls.Insecure
		c.encrypt() // false turns on verification, and does not turn off TLS
	}
	if g.passwordFile != "" {
		c.PasswordFile, c.PasswordCommand = g.passwordFile, nil
	}
	g.chosen = c
	return c, nil
}

func (g *Globals) choose() (*Chosen, error) {
	name, from := os.Getenv(contextEnv), contextEnv
	if g.given(contextFlag) {
		name, from = g.context, "--"+contextFlag
	}
	url := os.Getenv(urlEnv)
	switch {
	// An empty variable in a script must not select another server.
	case g.given(redisFlag) && g.Redis == "", g.given(contextFlag) && g.context == "":
		return nil, errors.New("--redis and --context must not be empty")
	case g.given("user") && g.user == "", g.given("password-file") && g.passwordFile == "":
		return nil, errors.New("--user and --password-file must not be empty")
	case g.Redis != "" && g.given(contextFlag):
		return nil, errors.New("--redis and --context are mutually exclusive")
	case g.Redis != "":
		return &Chosen{Context: config.Context{Redis: g.Redis}, From: "--" + redisFlag}, nil
	case name != "":
		return find(name, from)
	case url != "":
		return &Chosen{Context: config.Context{Redis: url}, From: urlEnv}, nil
	}
	return find("", FromCurrent)
}

// find returns the context with the given name. If name is "", it returns the current context or the default.
func find(name, from string) (*Chosen, error) {
	f, err := config.Load()
	if err != nil {
		return nil, err
	}
	if name == "" && f.Current == "" {
		return &Chosen{Context: config.Context{Redis: defaultRedis}, From: "default"}, nil
	}
	name = cmp.Or(name, f.Current)
	c, err := f.Find(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return &Chosen{Context: *c, Name: name, From: from}, nil
}

// Environment returns the variables that make commands started by this one use its server, but not its files. It does not
// replace REDIS_URL, which may name another program's server, and does not reveal a password. If it sets REDIS_URL, it
// clears REDIS_PASSWORD unless that is the server's password.
func (g *Globals) Environment() (env []string) {
	c, err := g.Choose()
	if err != nil || c.Name == "" && c.From != "--"+redisFlag {
		return nil
	}
	name := c.Name
	if c.encrypted() && !c.ownTLS {
		name = "" // the context alone would send its password unencrypted
	}
	if c.Name != "" || os.Getenv(contextEnv) != "" { // an empty variable is as if unset
		env = []string{contextEnv + "=" + name}
	}
	reachable := name == "" || c.User+c.Password() == "" && c.TLS() == (connect.TLS{})
	if os.Getenv(urlEnv) == "" && reachable && !c.shows() {
		env = append(env, urlEnv+"="+c.address())
		if c.Password() != passwordEnv && os.Getenv(passwordEnv) != "" {
			env = append(env, passwordEnv+"=")
		}
	}
	return env
}

// encrypted reports whether the address or a TLS setting turns on TLS.
func (c *Chosen) encrypted() bool {
	at, err := redisurl.Parse(c.Redis)
	return err == nil && at.Secure || c.TLS() != (connect.TLS{})
}

// encrypt makes the address one of a server with TLS. A Unix socket does not use TLS.
func (c *Chosen) encrypt() {
	if at, err := redisurl.Parse(c.Redis); err == nil && !at.Secure && at.Kind != redisurl.Socket {
		at.Secure = true
		c.Redis = at.Full()
	}
}

// address returns the address with the user and with TLS, so that no password is sent unencrypted or for another user.
func (c *Chosen) address() string {
	at, err := redisurl.Parse(c.Redis)
	if err != nil || c.User == "" && c.TLS() == (connect.TLS{}) {
		return c.Redis
	}
	if c.User != "" {
		at.User, at.UserOnly = c.User, false
	}
	at.Secure = c.encrypted()
	return at.Full()
}

func (g *Globals) given(flag string) bool { return g.flags != nil && g.flags.Changed(flag) }

// Explicit reports whether a flag names the server.
func (g *Globals) Explicit() bool { return g.given(redisFlag) || g.given(contextFlag) }

// Target returns the address without its password.
func (g *Globals) Target() string {
	c, err := g.Choose()
	if err != nil {
		return ""
	}
	return redisurl.Show(c.Redis)
}

// Named returns the address and the context, for messages.
func (g *Globals) Named() string {
	if c, err := g.Choose(); err == nil && c.Name != "" {
		return fmt.Sprintf("%s (context %s)", g.Target(), sanitize.Word(c.Name))
	}
	return g.Target()
}

// InContext returns the text of an error. It adds the name of the context, and its hints lead there.
func (g *Globals) InContext(err error) string {
	if g.chosen == nil || g.chosen.Name == "" {
		return g.Hint(err.Error())
	}
	const key = "the context's redis key"
	hints := []string{"--redis or REDIS_URL", key, ", with --redis ", ": set " + key + " to "}
	if !g.chosen.ownUser {
		const user, keys = "the context's user key", "the context's password-file or password-command key"
		remove := "remove " + keys
		if g.passwordFile != "" {
			remove = "remove --password-file"
		}
		hints = append(hints, "remove REDIS_PASSWORD or --password-file, or the password in the address", remove,
			"--user, and ", user+", and ", "--user, or in the address", user,
			"REDIS_PASSWORD or --password-file", cmp.Or(g.chosen.Password(), keys),
			"--user needs", user+" needs", "in REDIS_PASSWORD, or in a file for --password-file", keys)
	}
	return "context " + sanitize.Word(g.chosen.Name) + ": " + g.Hint(strings.NewReplacer(hints...).Replace(err.Error()))
}

// Hint adds this command's connection flags to the commands in a text. It omits passwords in an address.
func (g *Globals) Hint(text string) string {
	if g.chosen == nil || g.flags == nil {
		return text
	}
	flags := ""
	g.flags.VisitAll(func(f *pflag.Flag) {
		value := f.Value.String()
		switch {
		case !f.Changed:
			return
		case f.Name == redisFlag && g.chosen.shows():
			address, user := withoutPassword(value)
			if value = address; user != "" && g.user == "" {
				flags += "--user " + sanitize.Quote(user) + " "
			}
		case f.Value.Type() == "bool":
			flags += "--" + f.Name + "=" + value + " "
			return
		}
		flags += "--" + f.Name + " " + sanitize.Quote(value) + " "
	})
	const serve = "`redlatch serve"
	return strings.NewReplacer(serve, serve, "`redlatch ", "`redlatch "+flags).Replace(text)
}

// withoutPassword returns an address without passwords, and its user for --user.
func withoutPassword(address string) (without, user string) {
	at, err := redisurl.Parse(address)
	if err != nil {
		return redisurl.Show(address), ""
	}
	if !at.UserOnly || at.Kind != redisurl.Single { // otherwise the user is a password
		user = at.User
	}
	at.User, at.Password, at.SentinelUser, at.SentinelPassword = "", "", "", ""
	return at.Full(), user
}

// CompleteContexts completes the names of contexts.
func CompleteContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	f, err := config.Load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, name := range f.Names() {
		if sanitize.Word(name) == name { // names with other characters cannot be typed
			names = append(names, name+"\t"+redisurl.Show(f.Contexts[name].Redis))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
