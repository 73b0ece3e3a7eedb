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
	for _, v := range []struct {
		f fairsim.Fleet
		l bool
	}{{fairsim.Pure, false}, {fairsim.Mixed, false}, {fairsim.Mixed, true}} {
		for _, load := range append(fairsim.Loads[:3:3], fairsim.Skewed, fairsim.Patient) {
			t := time.Now()
			r := fairsim.Run(fairsim.Config{Seed: *seed, Time: time.Duration(*hours * float64(time.Hour)), Load: load, Fleet: v.f, KeepLiving: v.l})
			rr := r
			rr.FirstFaults = nil
			fmt.Printf("%v %s: idle %.2f%% pruned/1000 %.1f (%d %d unkept %d) %+v %v\n", v, load.Name, 100*r.IdleShare(), r.PerThousand(r.PrunedRedlatch+r.PrunedRedisson+r.PrunedUnkept), r.PrunedRedlatch, r.PrunedRedisson, r.PrunedUnkept, rr, time.Since(t))
			for _, f := range r.FirstFaults {
				fmt.Println("   ", f)
			}
		}
	}
}
