package repair

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// isSemaphore reports whether the name is that of a number, as that of a semaphore is.
func (u *Unlock) isSemaphore(ctx context.Context) (is bool) {
	err := u.use(ctx, func(c redis.Conn) error {
		found, err := inspect.NumberAt(ctx, c, u.Name)
		is = err == nil && found != nil
		return err
	})
	return is && err == nil
}

// lookPermits looks at the permits to take back. Each permit that is taken is a holder in Forced.
func (u *Unlock) lookPermits(ctx context.Context) (*look, error) {
	l := &look{Forced: &Forced{
		Named: inspect.NameOf(u.Name), Kind: string(inspect.Semaphore), Holders: []inspect.Holder{}, Renewed: inspect.RenewedUnknown,
		wanted: u.owners(),
	}}
	var ids, raw []string
	for _, id := range l.wanted {
		if decoded, err := hex.DecodeString(id); err == nil && id != "" { // no permit has another id
			ids, raw = append(ids, id), append(raw, string(decoded))
		}
	}
	var ends map[string]int64
	var now int64
	err := u.use(ctx, func(c redis.Conn) (err error) {
		l.asked = time.Now()
		ends, now, err = inspect.PermitEnds(c, u.Name, raw)
		return err
	})
	if err != nil {
		return nil, err
	}
	l.answered = time.Now()
	for i, id := range ids {
		end, taken := ends[raw[i]]
		if !taken {
			continue
		}
		h := inspect.Holder{Owner: id, Count: "1", Client: inspect.ClientOf(id), Mode: "permit"}
		if end < codec.PermitForever {
			left := max(end-now, 0)
			h.LeftMillis = &left
		}
		l.Holders = append(l.Holders, h)
	}
	return l, nil
}
