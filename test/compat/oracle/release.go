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

// ParseRelease parses the number of a release, such as "3.17.7".
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

// String returns the release's version.
func (r Release) String() string { return r.text }

func (r Release) atLeast(parts ...int) bool {
	return slices.Compare(r.parts[:], parts) >= 0
}

// NamesPublish reports whether scripts take the publish command as an argument.
func (r Release) NamesPublish() bool { return r.atLeast(3, 22) }

// HasFenced reports whether there are fenced locks.
func (r Release) HasFenced() bool { return r.atLeast(3, 19) }

// HasNonReentrant reports whether there are non-reentrant locks.
func (r Release) HasNonReentrant() bool { return r.atLeast(4, 4) }

// HasLatch reports whether unlock saves its reply in a latch.
func (r Release) HasLatch() bool { return r.atLeast(3, 24) }

// HasSemaphoreTTL reports whether the permits of a semaphore can have a TTL.
func (r Release) HasSemaphoreTTL() bool { return r.atLeast(3, 29) }

// HasReleaseIfExists reports whether the release of permits can require that the semaphore exists.
func (r Release) HasReleaseIfExists() bool { return r.atLeast(4) }

// CountsPermits reports whether the permits of an expirable semaphore can be counted and their total changed.
func (r Release) CountsPermits() bool { return r.atLeast(3, 20) }

// TakesManyPermits reports whether a call can acquire or release several expirable permits.
func (r Release) TakesManyPermits() bool { return r.atLeast(3, 22) }

// ReleasesAllOrNone reports whether one unknown ID prevents the release of all permits.
func (r Release) ReleasesAllOrNone() bool { return r.atLeast(3, 41) }

// TellsPermitLease reports whether the lease of a permit can be read.
func (r Release) TellsPermitLease() bool { return r.atLeast(3, 41) }

// RenewsBatches reports whether one call to a script renews many locks.
func (r Release) RenewsBatches() bool { return r.atLeast(3, 44) }

// RenewsOwnReaders reports whether renewals of read locks renew only the client's readers.
func (r Release) RenewsOwnReaders() bool { return r.atLeast(4, 4) }

// SpoilsReadRenewals reports whether a renewal of several read locks uses the keys of the wrong lock.
func (r Release) SpoilsReadRenewals() bool { return r.RenewsBatches() && !r.atLeast(4) }

// LosesNestedWrites reports whether a thread that releases a read hold stops the renewal of its write hold.
func (r Release) LosesNestedWrites() bool { return r.atLeast(3, 44) }

// LosesReaders reports whether a thread that releases several read holds stops other threads' renewals.
func (r Release) LosesReaders() bool { return r.atLeast(3, 37) && !r.atLeast(4, 6, 2) }

// BearsHeadless reports whether fair scripts tolerate a first waiter without a deadline.
func (r Release) BearsHeadless() bool { return r.atLeast(3, 31) }

// TellsQueuedLeft reports whether a queued waiter's retry returns the lock's remaining time.
func (r Release) TellsQueuedLeft() bool { return r.atLeast(3, 32) }

// BearsLastless reports whether an owner can be queued behind a waiter without a deadline.
func (r Release) BearsLastless() bool { return r.atLeast(3, 45) }

// LeaseAfterUnlock returns the lease that a Java lock object uses after an unlock. The object remembers the last
// explicit lease: up to 3.19.1 it does so forever, in later versions until any unlock, and from 3.27.2 until the unlock
// that frees the lock.
func (r Release) LeaseAfterUnlock(remembered, watchdog int64, freed bool) int64 {
	switch {
	case !r.atLeast(3, 19, 2), r.atLeast(3, 27, 2) && !freed:
		return remembered
	}
	return watchdog
}
