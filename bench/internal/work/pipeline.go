package work

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/internal/luasrc"
)

var errRefused = errors.New("a raw script was rejected")

// pipeline is the upper limit for clients with one lock per goroutine.
type pipeline struct {
	common
	conn   redis.Conn
	halves [2]half
	pairs  atomic.Int64
}

type half struct {
	acquire, release [][]any
	taking           bool // whether the last calls were acquisitions
	began            time.Time
}

func startPipeline(ctx context.Context, spec Spec) (job, error) {
	if spec.Kind != Pairs {
		return nil, fmt.Errorf("work: %s supports only %s", spec.Contestant, Pairs)
	}
	conn, err := redis.Dial("tcp", spec.Addr, redis.DialWriteTimeout(time.Minute), redis.DialReadTimeout(time.Minute))
	if err != nil {
		return nil, err
	}
	for _, s := range []string{luasrc.Acquire.Text(), luasrc.Release.Text()} {
		if _, err := conn.Do("SCRIPT", "LOAD", s); err != nil {
			return nil, err
		}
	}
	p := &pipeline{conn: conn}
	for i, name := range numbered(spec.Key, spec.Goroutines) {
		h := &p.halves[i%2]
		owner := fmt.Sprintf("0c2c7e4e-5f53-7c6b-9d3e-2b1f6a7c8d9e:%d", i+1)
		h.acquire = append(h.acquire, contest.AcquireArgs(name, owner))
		h.release = append(h.release, contest.ReleaseArgs(name, owner))
	}
	ctx, p.cancel = context.WithCancel(ctx)
	p.start(func() error { return p.run(ctx) })
	return p, nil
}

func (p *pipeline) run(ctx context.Context) error {
	for i := range p.halves {
		if err := p.send(&p.halves[i]); err != nil {
			return err
		}
	}
	for i := 0; ; i = 1 - i {
		h := &p.halves[i]
		if err := p.receive(h); err != nil {
			return err
		}
		// Once the second half's releases have been answered, all locks are free.
		if i == 0 && !h.taking && ctx.Err() != nil {
			return p.receive(&p.halves[1])
		}
		if err := p.send(h); err != nil {
			return err
		}
	}
}

func (p *pipeline) send(h *half) error {
	h.taking = !h.taking
	calls := h.release
	if h.taking {
		calls, h.began = h.acquire, time.Now()
	}
	for _, args := range calls {
		if err := p.conn.Send("EVALSHA", args...); err != nil {
			return err
		}
	}
	return p.conn.Flush()
}

func (p *pipeline) receive(h *half) error {
	for range h.acquire {
		reply, err := p.conn.Receive()
		if err != nil {
			return err
		}
		if h.taking != (reply == nil) {
			return errRefused
		}
	}
	if !h.taking && p.counting.Load() {
		took := time.Since(h.began)
		p.pairs.Add(int64(len(h.acquire)))
		for range h.acquire {
			p.times.Add(took)
		}
	}
	return nil
}

func (p *pipeline) end() Values {
	p.counting.Store(false)
	return p.describe(p.since.per(float64(p.pairs.Load())))
}

func (p *pipeline) close() error { return p.finish(p.conn.Close) }
