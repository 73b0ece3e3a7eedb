package follow

import (
	"strconv"
	"time"

	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// change is what an owner has done with a lock, or what has become of its hold.
type change struct{ what, owner string }

// changed returns what happened to the holders between two looks.
func changed(before, now *inspect.Snapshot, heard *received, first bool) []change {
	had, has := before.Holders, now.Holders
	switch {
	case first && len(has) > 0:
		return each(Held, has)
	case first && heard.messages > 0:
		return []change{{what: Released}}
	case first:
		return []change{{what: Free}}
	case len(had) == 0 && len(has) == 0:
		return nil
	case len(had) == 0:
		return append(each(Taken, has[:1]), each(Entered, has[1:])...)
	case len(has) == 0:
		return each(ending(before, now, heard), had)
	}
	return shared(had, has, heard)
}

func each(what string, holders []inspect.Holder) (all []change) {
	for _, h := range holders {
		all = append(all, change{what, h.Owner})
	}
	return all
}

// shared returns what holders of a lock have done that was held at both looks. Where none
// stayed it has passed to the first of the new ones. A holder of a read/write lock that came
// beside others entered it, and one that went left it.
func shared(had, has []inspect.Holder, heard *received) (all []change) {
	stayed, counts, before := 0, countsOf(has), countsOf(had)
	for _, h := range had {
		if count, still := counts[h.Owner]; !still {
			all = append(all, change{Left, h.Owner})
		} else {
			stayed++
			all = append(all, counted(h, count)...)
		}
	}
	for _, h := range has {
		if _, is := before[h.Owner]; !is {
			all = append(all, change{Entered, h.Owner})
		}
	}
	switch {
	case stayed == 0:
		return append([]change{{Passed, has[0].Owner}}, each(Entered, has[1:])...)
	case len(all) == 0 && len(has) == 1 && heard.freed > 0:
		return []change{{Passed, has[0].Owner}} // the same owner has freed it and taken it again
	}
	return all
}

// countsOf returns how often each owner has entered.
func countsOf(holders []inspect.Holder) map[string]inspect.Count {
	counts := make(map[string]inspect.Count, len(holders))
	for _, h := range holders {
		counts[h.Owner] = h.Count
	}
	return counts
}

// counted says what a holder has done that has another count now.
func counted(h inspect.Holder, count inspect.Count) []change {
	was, _ := strconv.ParseInt(string(h.Count), 10, 64) // 0 for what is no number
	is, _ := strconv.ParseInt(string(count), 10, 64)
	switch {
	case is > was:
		return []change{{Entered, h.Owner}}
	case is < was:
		return []change{{Left, h.Owner}}
	}
	return nil
}

// slack is how much earlier than expected a lease may be over: the answer with its time to
// live took time to arrive.
const slack = 100 * time.Millisecond

// ending says how a lock became free.
func ending(before, now *inspect.Snapshot, heard *received) string {
	switch {
	case heard.messages > 0:
		return Released
	case before.TTL >= 0 && !now.Answered.Add(slack).Before(before.Answered.Add(before.TTL)):
		return Expired
	}
	return Gone
}
