package oracle

import (
	"fmt"
	"slices"
)

// Divergence is a difference from Redisson that is meant.
type Divergence struct {
	// Name tells it apart, Reason says why it is meant. docs/protocol.md has the
	// same under "Differences on purpose".
	Name, Reason string
	// Applies tells for which releases, and for which owners of ours, it is to be
	// seen.
	Applies func(Release, Ours) bool
	// Explains tells whether it is the reason for one difference. It must be as
	// narrow as can be: what it lets through is not looked at any more.
	Explains func(o *Outcome, d Diff) bool
}

// Referee counts which divergences have explained something.
type Referee struct {
	release Release
	ours    Ours
	kind    *Kind
	seen    map[string]int
	steps   map[*Operation]int
}

// NewReferee judges outcomes of one release and one way of ours by a kind's list
// of divergences.
func NewReferee(r Release, ours Ours, kind *Kind) *Referee {
	return &Referee{release: r, ours: ours, kind: kind, seen: map[string]int{}, steps: map[*Operation]int{}}
}

// Judge returns an error for a difference that no divergence explains.
func (r *Referee) Judge(o *Outcome) error {
	_, err := r.explain(o)
	return err
}

// JudgeAs is Judge for an outcome of which it is known which divergences must be
// seen, where they apply. Others, or fewer, are an error.
func (r *Referee) JudgeAs(o *Outcome, meant []string) error {
	seen, err := r.explain(o)
	if err != nil {
		return err
	}
	for _, d := range r.kind.Diverges {
		if want := slices.Contains(meant, d.Name) && r.Expects(d); want != slices.Contains(seen, d.Name) {
			return fmt.Errorf("against Redisson %s, %s: %q is to be seen: %v", r.release, o.Step, d.Name, want)
		}
	}
	return nil
}

// explain returns the divergences that explain the differences.
func (r *Referee) explain(o *Outcome) (names []string, err error) {
	r.steps[o.Step.Op]++
	all := slices.Concat(r.kind.Diverges, r.kind.Also)
	for _, diff := range o.Diffs {
		i := slices.IndexFunc(all, func(d Divergence) bool { return r.Expects(d) && d.Explains(o, diff) })
		if i < 0 {
			return names, fmt.Errorf("against Redisson %s, %s: %s", r.release, o.Step, diff)
		}
		name := all[i].Name
		names = append(names, name)
		r.seen[name]++
	}
	return names, nil
}

// Expects tells whether a divergence is to be seen here.
func (r *Referee) Expects(d Divergence) bool { return d.Applies(r.release, r.ours) }

// Unseen returns the divergences that should have occurred and have not.
func (r *Referee) Unseen() []string {
	var unseen []string
	for _, row := range r.kind.Diverges {
		if r.Expects(row) && r.seen[row.Name] == 0 {
			unseen = append(unseen, row.Name)
		}
	}
	return unseen
}

// Steps returns how many steps of an operation were judged.
func (r *Referee) Steps(op *Operation) int { return r.steps[op] }
