package leader_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/trials"
	"github.com/redlatch/redlatch/leader"
)

const trialLease = 2 * time.Second

func TestMain(m *testing.M) { trials.Main(m, beCandidate) }

// beCandidate runs a candidate until it is killed, with a fair lock if a.Other is set.
func beCandidate(a trials.Args, steps *trials.Steps) error {
	ctx := context.Background()
	client, err := redlatch.Open(ctx, a.URL, redlatch.WithWatchdogTimeout(trialLease))
	if err != nil {
		return err
	}
	return leader.Run(ctx, client, a.Name, leader.Config{
		Fair: a.Other, Pause: 10 * time.Millisecond,
		Lead: func(ctx context.Context) error { return steps.Run(ctx, math.MaxInt64) },
	})
}
