package schedule

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// orderOf returns the order in which three actors ran their steps.
func orderOf(t *testing.T, seed uint64) string {
	t.Helper()
	var mu sync.Mutex
	var order strings.Builder
	run(t, seed, func(_ *testing.T, s *Schedule) {
		for _, name := range []string{"a", "b", "c"} {
			s.Go(name, func(a *Actor) {
				for range 5 {
					mu.Lock()
					fmt.Fprint(&order, name, a.Pick(10), " ")
					mu.Unlock()
					a.Yield()
				}
			})
		}
	})
	return order.String()
}

func TestSameSeedGivesSameOrder(t *testing.T) {
	orders := map[string]bool{}
	for seed := uint64(2); seed <= 40; seed += 2 {
		order := orderOf(t, seed)
		for range 3 {
			require.Equal(t, order, orderOf(t, seed))
		}
		orders[order] = true
	}
	require.Len(t, orders, 20)
}

// counter loses increments, because it releases its lock between reading and writing.
type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) increment(a *Actor) {
	c.mu.Lock()
	n := c.n
	c.mu.Unlock()
	a.Yield()
	c.mu.Lock()
	c.n = n + 1
	c.mu.Unlock()
}

// planted is the environment variable that selects the bug for a child process of TestRunPrintsFailingSeed.
const planted = "REDLATCH_SCHEDULE_BUG"

func runWith(t *testing.T, bug string) {
	t.Helper()
	Run(t, 50, func(t *testing.T, s *Schedule) {
		t.Helper()
		c := &counter{}
		for _, name := range []string{"a", "b"} {
			s.Go(name, func(a *Actor) {
				switch bug {
				case "lost update":
					c.increment(a)
				case "deadlock":
					if a.Yield(); a.Pick(4) == 0 {
						select {}
					}
				case "race":
					c.n++
				}
			})
		}
		s.Wait()
		if bug == "lost update" {
			require.Equal(t, 2, c.n)
		}
	})
}

var failedSeed = regexp.MustCompile(`the failed schedule: (-seed=\d+)\n`)

func TestRunPrintsFailingSeed(t *testing.T) {
	t.Parallel()
	if bug := os.Getenv(planted); bug != "" {
		runWith(t, bug)
		return
	}
	bugs := map[string]string{"lost update": "Error Trace:", "deadlock": "deadlock: "}
	if testlevel.Race {
		bugs["race"] = "DATA RACE"
	}
	for bug, sign := range bugs {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			child := func(args ...string) string {
				cmd := exec.CommandContext(t.Context(), os.Args[0], append(args, "-test.run=^TestRunPrintsFailingSeed$")...)
				cmd.Env = append(os.Environ(), planted+"="+bug)
				out, err := cmd.CombinedOutput()
				require.Error(t, err, "%s", out)
				require.Contains(t, string(out), sign)
				return string(out)
			}
			seed := failedSeed.FindStringSubmatch(child())
			require.NotNil(t, seed)
			require.Contains(t, child(seed[1]), seed[0])
		})
	}
}
