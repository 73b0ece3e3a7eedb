package trials

import (
	"cmp"
	"fmt"
	"slices"
)

// Run is one run of a process.
type Run struct {
	First, Last int64 // its first and last step, in nanoseconds since 1970
	name        string
}

// runs returns the runs of steps in the order in which they began. It is an error if one began before
// the one before it had ended.
func runs(steps []step) ([]Run, error) {
	known := map[string]Run{}
	for _, s := range steps {
		name := fmt.Sprintf("%d of process %d", s.run, s.pid)
		r, found := known[name]
		if !found {
			r = Run{First: s.at, name: name}
		}
		r.First, r.Last = min(r.First, s.at), max(r.Last, s.at)
		known[name] = r
	}
	var all []Run
	for _, r := range known {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Run) int { return cmp.Compare(a.First, b.First) })
	for i := 1; i < len(all); i++ {
		if all[i].First <= all[i-1].Last {
			return nil, fmt.Errorf("run %s began before run %s had ended", all[i].name, all[i-1].name)
		}
	}
	return all, nil
}
