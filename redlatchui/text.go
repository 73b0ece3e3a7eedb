package redlatchui

import (
	"crypto/sha256"
	"encoding/hex"
	"html/template"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redlatch/redlatch/internal/tool/board"
	"github.com/redlatch/redlatch/internal/tool/diagnosis"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// linkedName is the maximum length of a name in an address. Longer names are found by their hash.
const linkedName = 1024

var functions = template.FuncMap{
	"name": board.NameText, "link": lockLink, "label": board.LabelText, "word": ownerWord, "owner": ownerOf, "clientlink": clientLink, "client": clientOf,
	"kind": board.KindText, "number": board.NumberText, "queue": board.QueueText, "sentence": sentence, "full": fullSentence, "span": board.Span, "message": sanitize.Message,
	"held": board.AgeText, "role": board.RoleOf, "deadline": board.DeadlineText, "happening": board.Happening,
	"worst": worst, "steps": stepsOf, "notlooked": diagnosis.NotLooked, "examevery": func() time.Duration { return board.ExamEvery },
	"level": board.LevelOf, "named": func(label, link string) named { return named{Name: board.LabelText(label), Link: link} },
	"minus": func(a, b int) int { return a - b }, "join": strings.Join,
}

type named struct{ Name, Link, Label, ID string }

func ownerOf(owner, label string) named {
	return named{board.OwnerText(owner, label), clientLink(owner), label, inspect.ShortOwner(owner)}
}

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
