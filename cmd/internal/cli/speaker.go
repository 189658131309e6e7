package cli

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"ration/lease"
)

// speaker is a slog.Handler for people: each record is one sentence of the voice,
// when it was said before it, and what it is about in brackets.
type speaker struct {
	voice *Voice
	about []slog.Attr
}

var _ slog.Handler = speaker{}

func (speaker) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (s speaker) Handle(_ context.Context, r slog.Record) error {
	var about []string
	add := func(a slog.Attr) bool {
		value := a.Value.Resolve()
		text := value.String()
		switch v := value.Any().(type) {
		case error:
			text = plain(v)
		case time.Duration:
			text = lease.Rounded(v).String()
		}
		switch {
		case text == "":
		case a.Key == "error":
			about = append(about, text)
		default:
			about = append(about, a.Key+" "+text)
		}
		return true
	}
	for _, a := range s.about {
		add(a)
	}
	r.Attrs(add)
	sentence := plain(fmt.Errorf("%s", r.Message))
	if len(about) > 0 {
		sentence += " (" + strings.Join(about, "; ") + ")"
	}
	_, err := fmt.Fprintf(s.voice.err, "%s %s: %s\n", r.Time.Format("2006-01-02 15:04:05.000"), s.voice.name, sentence)
	return err
}

func (s speaker) WithAttrs(more []slog.Attr) slog.Handler {
	return speaker{s.voice, append(s.about[:len(s.about):len(s.about)], more...)}
}

// WithGroup has nothing to do: names are said as they are.
func (s speaker) WithGroup(string) slog.Handler { return s }
