// Program crossvet runs the analyzers of go vet for another system: GOOS=windows crossvet ./... It type-checks the
// dependencies from source. go vet would compile them, which takes much longer without a cache.
package main

import (
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/multichecker"
	"golang.org/x/tools/go/analysis/suite/vet"
)

func main() {
	multichecker.Main(slices.DeleteFunc(vet.Suite, func(a *analysis.Analyzer) bool {
		return a.Name == "scannererr" || a.Name == "sqlrowserr" // not in go vet of Go 1.26
	})...)
}
