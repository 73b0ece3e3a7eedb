// Program release makes a release in a checkout: it looks whether one may be made, writes the
// version into the nested modules, commits and tags. It pushes nothing.
//
//	go run -C scripts/release . v0.2.0            release v0.2.0
//	go run -C scripts/release . -dry-run v0.2.0   only look, and print what would be done
//	go run -C scripts/release . -api              print what the API has lost and got since the last tag
//	go run -C scripts/release . -api -since REV   the same since another revision
//
// All modules that users import have one version, and their tags are on one commit: vX.Y.Z for the
// core, adapter/goredis/vX.Y.Z and so on for the nested ones. A nested module names the core that it
// needs in its go.mod; there it keeps its replace, which tests in the checkout need and the go
// command ignores in a module that another one requires. So the required version must be one that
// exists, and this program writes it.
//
// It refuses
//
//   - a version that is no semantic version, is not above the last one, or is tagged already,
//   - a tree with changes,
//   - modules, documents and CI that do not agree about the Go version they need,
//   - an API that has changed more than the version says: what breaks needs a new major version, or
//     before v1 a new minor one; what is added needs a new minor version,
//   - a changelog without a line for the release, and a README that says that nothing is tagged.
//
// The last point is left out with -trial, for a clone that is thrown away. The tests of this module
// make such a release, serve it from a folder as a module proxy does, and use it as a stranger would.
package main
