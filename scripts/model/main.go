package main

import (
	"flag"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/fairsim"
)

func main() {
	hours := flag.Float64("hours", 400, "")
	seed := flag.Uint64("seed", 1, "")
	flag.Parse()
	for _, fleet := range []fairsim.Fleet{fairsim.Pure, fairsim.Mixed} {
		for _, load := range append(fairsim.Loads[:3:3], fairsim.Skewed) {
			t := time.Now()
			r := fairsim.Run(fairsim.Config{Seed: *seed, Time: time.Duration(*hours * float64(time.Hour)), Load: load, Fleet: fleet})
			rr := r; rr.Notes = nil; rr.FirstFaults = nil
			fmt.Printf("%v %s: idle %.2f%% pruned/1000 %.1f (%d %d unkept %d) %+v %v\n", fleet, load.Name, 100*r.IdleShare(), r.PerThousand(r.PrunedRedlatch+r.PrunedRedisson+r.PrunedUnkept), r.PrunedRedlatch, r.PrunedRedisson, r.PrunedUnkept, rr, time.Since(t))
			for _, f := range append(r.FirstFaults, r.Notes...) {
				fmt.Println("   ", f)
			}
		}
	}
}
