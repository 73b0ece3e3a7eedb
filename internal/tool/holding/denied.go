package holding

import (
	"context"

	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/diagnosis"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// denied names the rights that a user lacks. Servers do not always name what a script
// lacks, so the rights are tried.
func (o *Options) denied(ctx context.Context, srv *connect.Server, name string, err error) string {
	needs := []string{acl.Plain}
	if o.Fair {
		needs = append(needs, acl.Fair)
	}
	if o.Fenced {
		needs = append(needs, acl.Tokens)
	}
	if o.Permits != "" {
		needs = append(needs, acl.Semaphores)
	}
	if o.Read || o.Write {
		needs = append(needs, acl.ReadWrite)
	}
	if o.AtLeast > 0 {
		needs = append(needs, acl.Owners)
	}
	lacks, unknown := diagnosis.Lacks(ctx, srv, name, needs...)
	if unknown != nil {
		lacks = nil // the server's own words remain
	}
	return connect.Reason(err) + ". " + connect.Remedy(err, lacks...)
}

// why says why the lock could not be given up, or kept, in few words.
func (o *Options) why(ctx context.Context, h *Held, err error) string {
	if connect.Denied(err) {
		return o.denied(ctx, h.srv, h.Lock.Name(), err)
	}
	return sanitize.WithoutPrefix(connect.Reason(err))
}
