package redlatch

import (
	"context"
	"log/slog"
	"strings"
)

// shownInLog bounds how much of a name, an owner or an error one log line repeats,
// in bytes.
const shownInLog = 1024

// brief is a logger whose lines stay short whatever is in them: names of locks may
// be megabytes, and so may the texts of a server.
func brief(l *slog.Logger) *slog.Logger {
	inner := l.Handler()
	if inner == nil {
		return slog.New(slog.DiscardHandler) // that of the zero Logger, which would panic
	}
	return slog.New(briefHandler{inner})
}

type briefHandler struct{ slog.Handler }

func (h briefHandler) Handle(ctx context.Context, r slog.Record) error {
	short := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		short.AddAttrs(cut(a))
		return true
	})
	return h.Handler.Handle(ctx, short)
}

func (h briefHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return briefHandler{h.Handler.WithAttrs(attrs)}
}

func (h briefHandler) WithGroup(name string) slog.Handler {
	return briefHandler{h.Handler.WithGroup(name)}
}

// cut returns the attribute as it is when its text is short.
func cut(a slog.Attr) slog.Attr {
	text := ""
	switch v := a.Value.Any().(type) {
	case string:
		text = v
	case error:
		text = v.Error()
	}
	if len(text) <= shownInLog {
		return a
	}
	return slog.String(a.Key, strings.ToValidUTF8(text[:shownInLog], "")+"...")
}
