package main

import (
	"fmt"

	"golang.org/x/mod/semver"
)

// checkVersion refuses a version that cannot be released after the last one.
func (r *repo) checkVersion(last, version string) error {
	switch {
	case !semver.IsValid(version) || semver.Canonical(version) != version:
		return fmt.Errorf("%q is no version such as v0.2.0", version)
	case semver.Major(version) != "v0" && semver.Major(version) != "v1":
		return fmt.Errorf("%s needs module paths that end with /%s", version, semver.Major(version))
	case last != "" && semver.Compare(version, last) <= 0:
		return fmt.Errorf("%s is not above %s", version, last)
	}
	for _, m := range r.published() {
		tag := m.tag(version)
		if out, err := r.git("tag", "--list", tag); err != nil || out != "" {
			return fmt.Errorf("there is a tag %s already (%w)", tag, err)
		}
	}
	return nil
}

// change says how much an API has changed.
type change int

const (
	nothing change = iota
	added
	broken
)

// least returns the least version after the last one for what has changed.
func least(last string, c change) string {
	if last == "" {
		return "v0.1.0"
	}
	var major, minor, patch int
	if _, err := fmt.Sscanf(last, "v%d.%d.%d", &major, &minor, &patch); err != nil {
		panic(err) // a tag that lastTag took for a version
	}
	switch {
	case c == broken && major > 0:
		return fmt.Sprintf("v%d.0.0", major+1)
	case c != nothing:
		return fmt.Sprintf("v%d.%d.0", major, minor+1)
	case semver.Prerelease(last) != "":
		return fmt.Sprintf("v%d.%d.%d", major, minor, patch)
	}
	return fmt.Sprintf("v%d.%d.%d", major, minor, patch+1)
}

// fits reports whether a version is enough for what has changed since the last one. A version
// that is on the way to another one, such as v0.2.0-rc.1, counts as that.
func fits(last, version string, c change) bool {
	core := version
	if pre := semver.Prerelease(version); pre != "" {
		core = version[:len(version)-len(pre)]
	}
	return semver.Compare(core, least(last, c)) >= 0
}
