package cli

import (
	"io"
	"sync"
)

// Screen shares a terminal between lines that stay and one that is redrawn. It
// is safe for concurrent use.
type Screen struct {
	mu    sync.Mutex
	err   io.Writer
	live  bool
	drawn bool
}

// NewScreen gives the screen of s. The redrawn line is on stderr, and shown only
// if that is a terminal.
func NewScreen(s Streams) *Screen {
	return &Screen{err: s.Err, live: IsTerminal(s.Err, s)}
}

// Live says that Draw shows something.
func (s *Screen) Live() bool { return s.live }

// Draw shows line, cut to the screen, in place of the one before.
func (s *Screen) Draw(line string) {
	if !s.live {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = io.WriteString(s.err, "\r\x1b[K"+Printable(line, Width(s.err)-1)) // a lost line is drawn again
	s.drawn = true
}

// Erase takes the line away.
func (s *Screen) Erase() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
}

func (s *Screen) erase() {
	if s.drawn {
		_, _ = io.WriteString(s.err, "\r\x1b[K")
		s.drawn = false
	}
}

// Through gives a writer to w that never writes into the redrawn line, and one
// Write at a time.
func (s *Screen) Through(w io.Writer) io.Writer { return through{s, w} }

type through struct {
	screen *Screen
	to     io.Writer
}

func (t through) Write(p []byte) (int, error) {
	t.screen.mu.Lock()
	defer t.screen.mu.Unlock()
	t.screen.erase()
	return t.to.Write(p)
}
