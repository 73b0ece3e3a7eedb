package subcount

import (
	"context"
	"fmt"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/transport"
)

// round is calls that are under way at once, and the wait for their outcomes.
type round struct {
	asked []*asked
}

// asked is one call to one node.
type asked struct {
	*mux.Pending
	where string
}

func newRound(replicas int) *round { return &round{asked: make([]*asked, 0, 1+2*replicas)} }

func (r *round) start(node Node, where, command string, args []any) {
	r.asked = append(r.asked, &asked{mux.Begin(node, &transport.Call{Command: command, Args: args}), where})
}

// await returns the i-th reply. The error says which node was asked what.
func (r *round) await(ctx context.Context, i int) (any, error) {
	reply, err := r.asked[i].Wait(ctx)
	return reply, r.blame(i, err)
}

// blame adds to an error of the i-th call which node it concerns; nil stays
// nil.
func (r *round) blame(i int, err error) error {
	if err == nil {
		return nil
	}
	a := r.asked[i]
	return fmt.Errorf("redlatch: subscribers on %s cannot be counted: %s: %w", a.where, a.Name(), err)
}

// abandon leaves the calls that no caller waits for any more.
func (r *round) abandon() {
	for _, a := range r.asked {
		a.Abandon()
	}
}

// numbers returns the n numbers of a node, whose PUBSUB is the i-th call.
func (r *round) numbers(ctx context.Context, i, n int) ([]int64, error) {
	reply, err := r.await(ctx, i)
	if err != nil {
		return nil, err
	}
	counts, err := numbers(reply, n)
	return counts, r.blame(i, err)
}

// replicaNumbers is numbers for a replica, whose HELLO is the call before.
func (r *round) replicaNumbers(ctx context.Context, i, n int) ([]int64, error) {
	who, err := r.await(ctx, i-1)
	if err != nil {
		return nil, err
	}
	if err := isReplica(who); err != nil {
		return nil, r.blame(i-1, err)
	}
	return r.numbers(ctx, i, n)
}
