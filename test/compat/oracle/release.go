package oracle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Release is a release of Redisson.
type Release struct {
	text  string
	parts [3]int
}

// ParseRelease reads a release such as "3.17.7".
func ParseRelease(text string) (Release, error) {
	r := Release{text: text}
	fields := strings.Split(text, ".")
	if len(fields) != len(r.parts) {
		return r, fmt.Errorf("oracle: release %q is not of the form 3.17.7", text)
	}
	for i, field := range fields {
		n, err := strconv.Atoi(field)
		if err != nil {
			return r, fmt.Errorf("oracle: release %q: %w", text, err)
		}
		r.parts[i] = n
	}
	return r, nil
}

// String returns the release as it was read.
func (r Release) String() string { return r.text }

func (r Release) atLeast(parts ...int) bool {
	return slices.Compare(r.parts[:], parts) >= 0
}

// NamesPublish reports whether scripts get the publish command (from 3.22).
func (r Release) NamesPublish() bool { return r.atLeast(3, 22) }

// HasFenced reports whether there is a fenced lock (from 3.19).
func (r Release) HasFenced() bool { return r.atLeast(3, 19) }

// HasNonReentrant reports whether there are locks that their owner cannot enter again (from 4.4).
func (r Release) HasNonReentrant() bool { return r.atLeast(4, 4) }

// HasLatch reports whether unlock keeps a latch (from 3.24).
func (r Release) HasLatch() bool { return r.atLeast(3, 24) }

// HasSemaphoreTTL reports whether the permits of a semaphore can be set for a time (from 3.29).
func (r Release) HasSemaphoreTTL() bool { return r.atLeast(3, 29) }

// HasReleaseIfExists reports whether a semaphore is given permits only if it is there (from 4.0).
func (r Release) HasReleaseIfExists() bool { return r.atLeast(4) }

// CountsPermits reports whether a semaphore of permits that expire tells how many there are
// and how many are out, and can have them set anew (from 3.20).
func (r Release) CountsPermits() bool { return r.atLeast(3, 20) }

// TakesManyPermits reports whether such permits are taken and given back several at once; the
// acquire has other arguments, then (from 3.22).
func (r Release) TakesManyPermits() bool { return r.atLeast(3, 22) }

// ReleasesAllOrNone reports whether one unknown id among several leaves all permits out (from 3.41).
func (r Release) ReleasesAllOrNone() bool { return r.atLeast(3, 41) }

// TellsPermitLease reports whether a permit's lease can be asked for (from 3.41).
func (r Release) TellsPermitLease() bool { return r.atLeast(3, 41) }

// RenewsBatches reports whether one script renews many locks (from 3.44).
func (r Release) RenewsBatches() bool { return r.atLeast(3, 44) }

// RenewsOwnReaders reports whether the script that renews read holds is told all of a
// client's readers, and renews no others (from 4.4); earlier it is told one, and renews all.
func (r Release) RenewsOwnReaders() bool { return r.atLeast(4, 4) }

// SpoilsReadRenewals reports whether the script that renews read holds takes another lock's
// keys when it has several, and fails for a reader that has entered twice (3.44 to 3.52).
func (r Release) SpoilsReadRenewals() bool { return r.RenewsBatches() && !r.atLeast(4) }

// LosesNestedWrites reports whether a thread that gives a read hold back is no longer renewed
// as the writer (from 3.44).
func (r Release) LosesNestedWrites() bool { return r.atLeast(3, 44) }

// LosesReaders reports whether, once a thread has given back several read holds, other threads'
// read holds are no longer renewed (3.37 to 4.6.1).
func (r Release) LosesReaders() bool { return r.atLeast(3, 37) && !r.atLeast(4, 6, 2) }

// BearsHeadless reports whether the fair lock's scripts bear a first waiter that has
// no deadline (from 3.31); others fail.
func (r Release) BearsHeadless() bool { return r.atLeast(3, 31) }

// TellsQueuedLeft reports whether a fair lock's waiter that asks again gets what the lock
// has left (from 3.32); other releases answer with what its deadline makes of that.
func (r Release) TellsQueuedLeft() bool { return r.atLeast(3, 32) }

// BearsLastless reports whether the fair lock queues an owner behind one that has no
// deadline (from 3.45); others fail.
func (r Release) BearsLastless() bool { return r.atLeast(3, 45) }

// LeaseAfterUnlock returns the lease that a Java lock object uses next, after an
// unlock that left holds or not: it remembers the last explicit lease, up to
// 3.19.1 for good, from 3.19.2 on until any unlock, from 3.27.2 on until the
// unlock that frees.
func (r Release) LeaseAfterUnlock(remembered, watchdog int64, freed bool) int64 {
	switch {
	case !r.atLeast(3, 19, 2), r.atLeast(3, 27, 2) && !freed:
		return remembered
	}
	return watchdog
}
