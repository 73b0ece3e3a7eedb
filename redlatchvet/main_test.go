package main

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"
)

// The programs in testdata use this checkout's packages.
func TestChecksReportExpectedDiagnostics(t *testing.T) {
	analysistest.Run(t, "testdata", analyzer("all", "all checks", func(p checked) {
		for _, check := range checks {
			_, _ = check.Run(p.Pass)
		}
	}), "./...")
}
