package redlatch

import (
	"context"
	"log/slog"
	"strings"
)

// shownInLog is the maximum length of a value in bytes. Names and server errors may be megabytes
// long.
const shownInLog = 1024

func brief(l *slog.Logger) *slog.Logger {
	inner := l.Handler()
	if inner == nil {
		return slog.New(slog.DiscardHandler) // the zero Logger would panic
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
