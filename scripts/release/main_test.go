package main

import (
	"log"
	"os"
	"path/filepath"
	"testing"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestMain(m *testing.M) {
	config, err := filepath.Abs("testdata/gitconfig")
	if err != nil {
		log.Fatal(err)
	}
	// Commits of the tests have this author on every machine, and no signature.
	for name, value := range map[string]string{
		"GIT_AUTHOR_NAME": "release", "GIT_AUTHOR_EMAIL": "release@example.com",
		"GIT_COMMITTER_NAME": "release", "GIT_COMMITTER_EMAIL": "release@example.com",
		"GIT_CONFIG_GLOBAL": config, "GIT_CONFIG_NOSYSTEM": "1",
	} {
		_ = os.Setenv(name, value)
	}
	redistest.Main(m)
}
