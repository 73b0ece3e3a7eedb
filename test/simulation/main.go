// Model simulates fleets that share a fair lock, for months of their time, and
// prints the table that docs/fair-lock.md shows. It fails when something happened
// that must not:
//
//	go run ./test/simulation -hours 400
//
// Some minutes of one core are enough for 400 hours of each fleet. The same seed
// tells the same story.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/redlatch/redlatch/test/simulation/fairsim"
)

func main() {
	hours := flag.Float64("hours", 400, "how many `hours` each fleet is simulated for")
	seed := flag.Uint64("seed", 1, "`number` that decides all that happens by chance")
	verbose := flag.Bool("v", false, "show all that was counted")
	flag.Parse()
	m := &model{time: time.Duration(*hours * float64(time.Hour)), seed: *seed, log: io.Discard}
	if *verbose {
		m.log = os.Stderr
	}
	m.all()
	fmt.Print(fairsim.Table(m.rows))
	for _, f := range m.faults {
		fmt.Fprintln(os.Stderr, "model:", f)
	}
	if len(m.faults) > 0 {
		os.Exit(1)
	}
}

// model is what is run, and what has come of it.
type model struct {
	time   time.Duration
	seed   uint64
	log    io.Writer
	rows   []fairsim.Row
	faults []string
}

func (m *model) all() {
	for _, load := range fairsim.Loads {
		m.run("Redisson alone, "+load.Name, load, fairsim.Pure)
	}
	for _, load := range slices.Concat(fairsim.Loads, []fairsim.Load{fairsim.Skewed}) {
		m.run("with Redlatch, "+load.Name, load, fairsim.Mixed)
	}
}

// run simulates one fleet under one load.
func (m *model) run(what string, load fairsim.Load, fleet fairsim.Fleet) {
	r := fairsim.Run(fairsim.Config{Seed: m.seed, Time: m.time, Load: load, Fleet: fleet})
	m.rows = append(m.rows, fairsim.Row{What: what, Result: r})
	_, _ = fmt.Fprintf(m.log, "%s: %+v\n", what, r)
	for _, f := range r.FirstFaults {
		m.fault(what, f)
	}
	if fleet.Redlatch == 0 {
		return
	}
	if n := r.PrunedRedlatch + r.EvictedRedlatch + r.EvictedRedisson; n > 0 {
		m.fault(what, fmt.Sprintf("%d live waiters lost their places", n))
	}
	if share := r.IdleShare(); share > load.Idle {
		m.fault(what, fmt.Sprintf("the lock was idle for %.2f %% of the time", 100*share))
	}
}

func (m *model) fault(what, fault string) { m.faults = append(m.faults, what+": "+fault) }
