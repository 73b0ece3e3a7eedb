package run

import (
	"context"

	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/diagnosis"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// denied names the rights that a user lacks. Servers do not always name what a script
// lacks, so the rights are tried.
func (o *runOptions) denied(ctx context.Context, srv *connect.Server, name string, err error) string {
	needs := []string{acl.Plain}
	if o.fair {
		needs = append(needs, acl.Fair)
	}
	if o.fenced {
		needs = append(needs, acl.Tokens)
	}
	if o.permits != "" {
		needs = append(needs, acl.Semaphores)
	}
	if o.read || o.write {
		needs = append(needs, acl.ReadWrite)
	}
	if o.atLeast > 0 {
		needs = append(needs, acl.Owners)
	}
	lacks, unknown := diagnosis.Lacks(ctx, srv, name, needs...)
	if unknown != nil {
		lacks = nil // the server's own words remain
	}
	return connect.Reason(err) + ". " + connect.Remedy(err, lacks...)
}

// why says why the lock could not be given up, or kept, in few words.
func (o *runOptions) why(ctx context.Context, h *held, err error) string {
	if connect.Denied(err) {
		return o.denied(ctx, h.srv, h.lock.Name(), err)
	}
	return sanitize.WithoutPrefix(connect.Reason(err))
}
