package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
)

const (
	source      = "README.md"
	translation = "README.zh-CN.md"
)

// stampLine is the first line of a translation.
var stampLine = regexp.MustCompile(`\A<!-- translated from README\.md, sha256 ([0-9a-f]{64}) -->\n`)

func main() {
	stamp := flag.Bool("stamp", false, "note in the translation that it is one of the present README")
	flag.Parse()
	if err := run(*stamp); err != nil {
		fmt.Fprintln(os.Stderr, "translation:", err)
		os.Exit(1)
	}
}

func run(stamp bool) error {
	original, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	translated, err := os.ReadFile(translation)
	if err != nil {
		return err
	}
	apart := differences(string(original), string(translated))
	for _, d := range apart {
		fmt.Fprintf(os.Stderr, "%s: %s\n", translation, d)
	}
	if len(apart) > 0 {
		return fmt.Errorf("%s and %s have come apart", source, translation)
	}
	if !stamp {
		return current(string(original), string(translated))
	}
	text, err := stamped(string(original), string(translated))
	if err != nil {
		return err
	}
	return write(text)
}

// write replaces the translation's text.
func write(text string) error {
	file, err := os.Create(translation)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// sum is what the stamp says of an original.
func sum(original string) string {
	h := sha256.Sum256([]byte(original))
	return hex.EncodeToString(h[:])
}

// current returns an error unless the translation's stamp is that of the original.
func current(original, translated string) error {
	m := stampLine.FindStringSubmatch(translated)
	switch {
	case m == nil:
		return fmt.Errorf("%s has no stamp in its first line", translation)
	case m[1] != sum(original):
		return fmt.Errorf("%s has changed since it was translated: translate what has changed in %s, "+
			"then go run ./scripts/translation -stamp", source, translation)
	}
	return nil
}

// stamped returns the translation with the stamp of the original.
func stamped(original, translated string) (string, error) {
	m := stampLine.FindStringSubmatchIndex(translated)
	if m == nil {
		return "", fmt.Errorf("%s has no stamp in its first line", translation)
	}
	return translated[:m[2]] + sum(original) + translated[m[3]:], nil
}
