package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/redlatch/redlatch/internal/acl"
)

// Service is a managed service, which keeps some commands of the server to itself.
type Service struct {
	// Name is how it is called on the command line, and Title how its maker calls it.
	Name, Title string
	// Without lists the commands that it leaves out, as in ACL SETUSER: pubsub is all of
	// pubsub, client|kill only that. Commands that locks do not need are not listed.
	Without []string
	// Source is the maker, and its page that lists them. Read is the day on which it was read.
	Source, Read string
}

var services = []Service{
	{
		Name: "aiven", Title: "Aiven for Caching", Without: []string{"acl", "config", "role"},
		Source: "Aiven: Restricted commands", Read: "2026-11-24",
	},
	{
		Name: "azure-cache", Title: "Azure Cache for Redis", Without: []string{"config"},
		Source: "Microsoft: How to configure Azure Cache for Redis", Read: "2026-11-24",
	},
	{
		Name: "elasticache", Title: "Amazon ElastiCache, node-based", Without: []string{"acl|setuser", "config"},
		Source: "AWS: Supported and restricted commands", Read: "2026-11-24",
	},
	{
		Name: "elasticache-serverless", Title: "Amazon ElastiCache Serverless",
		Without: []string{"acl|setuser", "config", "client|id", "client|info", "client|kill", "psubscribe", "wait"},
		Source:  "AWS: Supported and restricted commands", Read: "2026-11-24",
	},
	{
		Name: "memorydb", Title: "Amazon MemoryDB", Without: []string{"acl|setuser", "config"},
		Source: "AWS: Restricted commands", Read: "2026-11-24",
	},
	{
		Name: "memorystore", Title: "Google Memorystore for Redis", Without: []string{"acl", "client", "config"},
		Source: "Google: Supported commands", Read: "2026-11-24",
	},
}

// Services returns the services whose lists are known.
func Services() []Service { return slices.Clone(services) }

// Predict says what Examine would find of the service, judged by its list alone: it asks no
// server.
func (s *Service) Predict(needs []string) []Finding {
	e := &examination{needs: needed(needs)}
	all := []Finding{{
		Check: "server", Level: Unknown,
		Found: fmt.Sprintf("%s as of %s, from the page %q; no server was asked", s.Title, s.Read, s.Source),
	}}
	add := func(check string, f *Finding) {
		f.Check = check
		all = append(all, *f)
	}
	for i := range questions {
		if q := &questions[i]; e.asks(q) {
			f := e.absent(q, "the service", s.lacks(acl.Of(q.id).Commands))
			add(q.check, &f)
		}
	}
	if e.has(acl.Listeners, acl.Operator, acl.Onlooker) {
		f := good("listeners can be counted: dead waiters are detected")
		if lacks := s.lacks(acl.Of(acl.Listeners).Commands); len(lacks) > 0 {
			f = warning("Dead waiters of fair locks block them until their deadlines.", "listeners cannot be counted without %s", spaced(lacks))
		}
		add("counting", &f)
	}
	if len(s.lacks([]string{"config|get"})) > 0 {
		f := unknown("unknown: CONFIG GET does not work")
		add("keepalive", &f)
	}
	return all
}

// lacks returns those of the commands that the service leaves out.
func (s *Service) lacks(commands []string) (all []string) {
	for _, command := range commands {
		container, _, _ := strings.Cut(command, "|")
		if slices.Contains(s.Without, command) || slices.Contains(s.Without, container) {
			all = append(all, command)
		}
	}
	return all
}

// absent makes the finding about commands that a need consists of and that the server
// leaves out, for every user.
func (e *examination) absent(q *question, server string, commands []string) Finding {
	if len(commands) == 0 {
		return good("%s has the commands for %s", server, q.use)
	}
	return Finding{
		Level:  e.lacking(q.id),
		Found:  server + " has no " + spaced(commands) + ", which " + q.use + " need",
		Advice: q.absent,
	}
}
