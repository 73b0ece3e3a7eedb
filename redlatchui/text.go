package redlatchui

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redlatch/redlatch/internal/tool/board"
	"github.com/redlatch/redlatch/internal/tool/diagnosis"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

const (
	shownName = 160
	// linkedName is the maximum length of a name in an address. Longer names are found by their
	// hash.
	linkedName = 1024
)

var functions = template.FuncMap{
	"name": nameText, "link": lockLink, "label": labelText, "word": ownerWord, "owner": ownerOf, "clientlink": clientLink, "client": clientOf,
	"kind": kindText, "number": numberText, "queue": queueText, "sentence": sentence, "full": fullSentence, "span": span, "message": sanitize.Message,
	"held": ageText, "role": roleOf, "deadline": deadlineText, "permit": permitText, "happening": happening,
	"worst": worst, "circles": circlesOf, "steps": stepsOf, "notlooked": diagnosis.NotLooked, "examevery": func() time.Duration { return board.ExamEvery },
	"minus": func(a, b int) int { return a - b }, "join": strings.Join,
}

// nameText returns a name as text. It escapes invalid bytes and control and direction characters,
// and cuts out the middle of a long name.
func nameText(name string) string {
	if len(name) <= shownName {
		return sanitize.Word(name)
	}
	head, tail := name[:shownName/2], name[len(name)-shownName/4:]
	for !utf8.ValidString(head) && len(head) > shownName/2-utf8.UTFMax && utf8.ValidString(name[:len(head)-1]) {
		head = head[:len(head)-1]
	}
	return fmt.Sprintf("%s … %s (%d bytes)", sanitize.Word(head), sanitize.Word(tail), len(name))
}

func labelText(label string) string {
	if len(label) > shownName {
		label = label[:shownName] + "…"
	}
	return sanitize.Line(label)
}

func ownerText(owner, label string) string {
	if label != "" {
		return labelText(label) + " (" + inspect.ShortOwner(owner) + ")"
	}
	return inspect.ShortOwner(owner)
}

type named struct{ Name, Link string }

func ownerOf(owner, label string) named { return named{ownerText(owner, label), clientLink(owner)} }

// clientLink returns "" if the ID is too long.
func clientLink(owner string) string {
	id := board.ClientID(owner)
	if len(id) > linkedName || id == "" {
		return ""
	}
	return "who?client=" + url.QueryEscape(id)
}

func lockLink(name string) string { return "lock?" + lockQuery(name) }

func lockQuery(name string) string {
	if len(name) > linkedName {
		return "hash=" + hashOf(name)
	}
	return "name=" + url.QueryEscape(name)
}

func hashOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])
}

func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d", int(d.Hours())/24)
}

func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 || first == utf8.RuneError {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

func fullSentence(text string) string {
	return strings.TrimSuffix(sentence(sanitize.Message(text)), ".") + "."
}

// queueText tells how many callers are waiting. Listening connections are only a hint.
func queueText(e board.Entry) string {
	n := e.Waiters()
	switch {
	case e.Queue > 0:
		return strconv.FormatInt(n, 10)
	case e.Uncounted:
		return "not known"
	case n > 0:
		return fmt.Sprintf("%d listening", n)
	}
	return ""
}

func numberText(kind inspect.Kind, n *inspect.Number) string {
	switch kind {
	case inspect.Semaphore:
		return fmt.Sprintf("%d taken, %d free", n.Taken, n.Available)
	case inspect.Latch:
		return fmt.Sprintf("%d to count down", n.Available)
	}
	return fmt.Sprintf("number %d", n.Available)
}

func kindText(kind inspect.Kind, mode string) string {
	switch {
	case kind == inspect.ReadWrite && mode != "":
		return "read/write, " + mode
	case kind == inspect.ReadWrite:
		return "read/write"
	}
	return string(kind)
}
