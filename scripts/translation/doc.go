// Program translation keeps the README and its Chinese translation together. Run it from
// the root of the checkout:
//
//	go run ./scripts/translation            fail when they have come apart
//	go run ./scripts/translation -stamp     after the translation was brought up to date
//
// A translation that lags behind is worse than none: its reader has no way to know. So two
// things are checked.
//
// The first line of the translation has the SHA-256 of the README that it was made from. A
// change of the README includes its translation, and a new stamp.
//
// And what is not prose must be the same in both, section by section: the levels of the
// headings, the code byte for byte, where links lead, the code in the prose, and how many
// paragraphs, list items, and rows and columns of tables there are. The stamp is refused
// until that is so.
//
// What is left is to translate well, which no program judges.
package main
