// The vet tool: a module of its own, so that golang.org/x/tools stays out of users' go.sum. It has no
// replace, which "go install" does not accept.
module github.com/redlatch/redlatch/redlatchvet

go 1.26.0

require golang.org/x/tools v0.52.0

require (
	golang.org/x/mod v0.42.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
)
