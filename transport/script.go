package transport

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by SHA-1; nothing here relies on it for security.
	"encoding/hex"
)

// Script is a Lua script and the digest that EVALSHA knows it by. It is
// immutable and safe for concurrent use.
type Script struct {
	name string
	text string
	sha  string
}

// NewScript makes a script from its text. The name appears in logs and errors
// only; Redis never sees it.
func NewScript(name, text string) *Script {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // see the import
	return &Script{name: name, text: text, sha: hex.EncodeToString(sum[:])}
}

// Name returns the name that the script was made with.
func (s *Script) Name() string { return s.name }

// Text returns the Lua text, for EVAL and SCRIPT LOAD.
func (s *Script) Text() string { return s.text }

// SHA returns the lower-case hexadecimal SHA-1 of the text, for EVALSHA.
func (s *Script) SHA() string { return s.sha }
