package all

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli/config"
	"github.com/redlatch/redlatch/internal/redisurl"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

const contextHelp = `A context is a server with a name. The config file lists contexts and names the
current one. It is redlatch/config.yaml in XDG_CONFIG_HOME, by default
~/.config, or the value of REDLATCH_CONFIG:

  current-context: dev
  contexts:
    dev:
      redis: redis://127.0.0.1:6379
    prod:
      redis: redis-sentinel://s1:26379,s2:26379/mymaster
      user: operator
      password-command: [pass, show, redis/prod]
      tls-ca: prod-ca.pem

The keys of a context are the connection flags without their hyphens, and
password-command, a program and its arguments. It runs in the file's directory,
without a shell and without input, for at most 10 seconds, and its output is
the password. It can't read from the terminal; hold -s runs it in the
background. Relative paths start at the file's directory. An unknown key, or a
file that other users own or can write, is an error; so is a password in a
context that is used.

The first of these names the server:

  1. --redis or --context, not both
  2. REDLATCH_CONTEXT
  3. REDIS_URL
  4. the current context, set by redlatch context use; run and hold reject it
  5. ` + "redis://127.0.0.1:6379" + `

The other connection flags override the context's keys. If --redis or REDIS_URL
names the server, no key of a context is used.`

func newContext(g *cli.Globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "context",
		Short: "List and select the servers in the config file",
		Long:  contextHelp,
		Example: `  redlatch context list
  redlatch --context prod list
  redlatch context use dev
  redlatch context show                # the server that commands use now`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, newCommand := range []cli.Constructor{newContextList, newContextShow, newContextUse} {
		cmd.AddCommand(cli.Checked(newCommand(g)))
	}
	return cmd
}

type described struct {
	Name     string `json:"name,omitempty"`
	Current  *bool  `json:"current,omitempty"`
	From     string `json:"from,omitempty"`
	Redis    string `json:"redis"`
	User     string `json:"user,omitempty"`
	Password string `json:"password,omitempty"`
	File     string `json:"config_file,omitempty"`
}

func newContextList(g *cli.Globals) *cobra.Command {
	var format cli.Output
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the contexts",
		Long:  "Lists the contexts of the config file. * marks the one that commands use now.",
		Example: `  redlatch context list
  redlatch context list -o name`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := config.Load()
			if err != nil {
				return cli.Usagef("%w", err)
			}
			used, err := g.Choose()
			if err != nil { // the list shows the valid names
				used = &cli.Chosen{}
				cli.Messagef(os.Stderr, "warning: %v", err)
			} else {
				warnOfOther(f.Current, used)
			}
			all := []described{}
			for _, name := range f.Names() {
				c, current := f.Contexts[name], name == used.Name
				all = append(all, described{Name: name, Current: &current, Redis: redisurl.Show(c.Redis), User: c.User})
			}
			if len(all) == 0 && !format.Structured() {
				why := ""
				if f.Missing {
					why = ", which does not exist"
				}
				cli.Messagef(os.Stderr, "no contexts in %s%s; see redlatch context --help", cmp.Or(f.Path, "the config file"), why)
				return nil
			}
			return format.Print(cmd, all, func(w io.Writer) { printContexts(w, &format, all) })
		},
	}
	format.RegisterNames(cmd)
	return cmd
}

func printContexts(w io.Writer, format *cli.Output, all []described) {
	if format.Names() {
		for _, c := range all {
			fmt.Fprintln(w, cli.Name(c.Name))
		}
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer func() { _ = t.Flush() }() // cli.Execute reports the error
	if !format.NoHeaders {
		fmt.Fprintln(t, "CURRENT\tNAME\tREDIS\tUSER")
	}
	for _, c := range all {
		mark := ""
		if *c.Current {
			mark = "*"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", mark, cli.Name(c.Name), c.Redis, cli.Name(cmp.Or(c.User, "default")))
	}
}

// warnOfOther warns that the environment overrides the current context.
func warnOfOther(current string, used *cli.Chosen) {
	if current == "" || used.Name == current || strings.HasPrefix(used.From, "--") {
		return
	}
	cli.Messagef(os.Stderr, "warning: %s overrides the current context %s: commands use %s",
		used.From, sanitize.Word(current), redisurl.Show(used.Redis))
}

func newContextShow(g *cli.Globals) *cobra.Command {
	var format cli.Output
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the server that commands use now, and why",
		Long: `Shows the server that commands with the same flags use, and the flag, variable
or file that names it. It does not connect, and does not run password-command.`,
		Example: `  redlatch context show
  redlatch --context prod context show -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := g.Choose()
			if err != nil {
				return err
			}
			d := described{Name: c.Name, From: c.From, Redis: redisurl.Show(c.Redis), User: c.User, Password: c.Password()}
			if c.Name != "" {
				d.File, _ = config.Path()
			}
			return format.Print(cmd, d, func(w io.Writer) {
				for _, line := range [][2]string{
					{"context", d.Name}, {"from", d.From}, {"file", d.File}, {"redis", d.Redis}, {"user", d.User}, {"password", d.Password},
				} {
					if line[1] != "" {
						fmt.Fprintf(w, "%-9s %s\n", line[0], sanitize.Line(line[1]))
					}
				}
			})
		},
	}
	format.Register(cmd, "")
	return cmd
}

func newContextUse(g *cli.Globals) *cobra.Command {
	return &cobra.Command{
		Use:   "use NAME",
		Short: "Make a context the current one",
		Long: `Makes NAME the current context, for all commands of this user except run and
hold that no flag, REDLATCH_CONTEXT or REDIS_URL directs to another server. It
changes one line of the config file.`,
		Example:           `  redlatch context use dev`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cli.CompleteContexts,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := config.Load()
			if err == nil {
				err = f.Use(args[0])
			}
			if err != nil {
				return cli.Usagef("%w", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "current context %s: %s\n", sanitize.Word(args[0]), redisurl.Show(f.Contexts[args[0]].Redis))
			if used, err := g.Choose(); err == nil {
				warnOfOther(args[0], used)
			}
			return nil
		},
	}
}
