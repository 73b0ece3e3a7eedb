package loss

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Plan says what is to be measured.
type Plan struct {
	// Clients take turns; the cells of each run at once, one for each of Ways and Leases.
	Clients []Client
	Ways    []Way
	Leases  []time.Duration
	// Holds is how many trials a cell has, Rounds how many cells of each kind there are.
	Holds, Rounds int
	// Log gets progress lines.
	Log io.Writer
}

// Run carries the plan out. An error does not take what the other cells measured.
func (p Plan) Run(ctx context.Context) ([]Outcome, error) {
	var all []Outcome
	var errs []error
	for round := range p.Rounds {
		for _, client := range p.Clients {
			began := time.Now()
			outcomes, err := p.turn(ctx, client)
			all, errs = append(all, outcomes...), append(errs, err)
			_, _ = fmt.Fprintf(p.Log, "round %d: %s: %d outcomes in %v\n", round+1, client.Name,
				len(outcomes), time.Since(began).Round(time.Second))
		}
	}
	return all, errors.Join(errs...)
}

// turn runs all cells of one client.
func (p Plan) turn(ctx context.Context, client Client) ([]Outcome, error) {
	sampler := NewSampler()
	defer sampler.Close()
	var mu sync.Mutex // guards all and errs
	var all []Outcome
	var errs []error
	var cells sync.WaitGroup
	for _, way := range p.Ways {
		for _, lease := range p.Leases {
			cell := Cell{Client: client, Way: way, Lease: lease, Holds: p.Holds}
			cells.Go(func() {
				outcomes, err := cell.Run(ctx, sampler)
				mu.Lock()
				defer mu.Unlock()
				all, errs = append(all, outcomes...), append(errs, err)
			})
		}
	}
	cells.Wait()
	return all, errors.Join(errs...)
}
