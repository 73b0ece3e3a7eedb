// Package docs tests the documents: the tests that they name exist, each Go snippet
// is compiled, links lead somewhere, names of our packages are declared, and each user
// scenario has a test. It has tests only.
package docs
