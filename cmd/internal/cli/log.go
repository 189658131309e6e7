package cli

import (
	"fmt"
	"io"
	"log/slog"
)

// Logging is the flag for what stderr looks like.
type Logging struct {
	LogFormat string `help:"What stderr looks like: text or json." default:"text" enum:"text,json" placeholder:"FORMAT"`
}

// Voice speaks to people on stderr, in sentences or as JSON records. It is safe
// for concurrent use as far as its writer is.
type Voice struct {
	// Log is for what an operator acts on.
	Log  *slog.Logger
	name string
	json bool
	err  io.Writer
}

// Voice gives the voice of the command called name.
func (l Logging) Voice(name string, s Streams) *Voice {
	v := &Voice{name: name, json: l.LogFormat == "json", err: s.Err}
	if v.json {
		v.Log = slog.New(slog.NewJSONHandler(s.Err, nil)).With("command", name)
	} else {
		v.Log = slog.New(speaker{voice: v})
	}
	return v
}

// Say writes one sentence.
func (v *Voice) Say(format string, args ...any) {
	sentence := fmt.Sprintf(format, args...)
	if v.json {
		v.Log.Info(sentence)
		return
	}
	fmt.Fprintf(v.err, "%s: %s\n", v.name, sentence)
}

// Complain writes one error.
func (v *Voice) Complain(err error) {
	if v.json {
		v.Log.Error(plain(err))
		return
	}
	fmt.Fprintf(v.err, "%s: %s\n", v.name, plain(err))
}
