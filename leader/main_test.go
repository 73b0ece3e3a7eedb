package leader_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/leader"
)

// asCandidate has, for a process that is a candidate, the URL of the server, the name of the
// lock, whether it is fair, and the file of steps.
const asCandidate = "REDLATCH_LEADER_CANDIDATE"

// trialLease is that of the trials: a process that is stopped for longer has lost the lead.
const trialLease = 2 * time.Second

func TestMain(m *testing.M) {
	if args := strings.Fields(os.Getenv(asCandidate)); len(args) == 4 {
		if err := beCandidate(args[0], args[1], args[2] == "true", args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// Elections wait for leases to end, most of the time.
	parallel := flag.Lookup("test.parallel").Value // not what the command line says, yet
	if n, err := strconv.Atoi(parallel.String()); err == nil && n < 12 {
		_ = parallel.Set("12") // it takes any number
	}
	redistest.Main(m)
}

// beCandidate leads when it can, until it is killed.
func beCandidate(url, name string, fair bool, file string) error {
	ctx := context.Background()
	client, err := redlatch.Open(ctx, url, redlatch.WithWatchdogTimeout(trialLease))
	if err != nil {
		return err
	}
	steps, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	term := 0
	return leader.Run(ctx, client, name, leader.Config{Fair: fair, Pause: 10 * time.Millisecond, Lead: func(ctx context.Context) error {
		term++
		for {
			// A step counts for the time at which the context was still to be asked: the process
			// may be stopped between the question and the step.
			now := time.Now()
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if _, err := fmt.Fprintf(steps, "%d %d.%d\n", now.UnixNano(), os.Getpid(), term); err != nil {
				return err
			}
			time.Sleep(5 * time.Millisecond)
		}
	}})
}
