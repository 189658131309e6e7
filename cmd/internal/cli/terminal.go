package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// IsTerminal says that w is a terminal that can redraw a line.
func IsTerminal(w io.Writer, s Streams) bool {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return false
	}
	kind, _ := s.Getenv("TERM")
	return kind != "dumb"
}

// Coloured says that w may be written to in colour: it is a terminal, and
// NO_COLOR is not set.
func Coloured(w io.Writer, s Streams) bool {
	_, no := s.Getenv("NO_COLOR")
	return !no && IsTerminal(w, s)
}

// Width is how many columns w has, 80 if it is no terminal or does not say.
func Width(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// Printable shortens a text that was not written for a terminal to at most
// width characters, and shows what would act on the terminal, and a space that
// nobody would see at its end, as an escape. Texts that differ and are not
// shortened look different.
func Printable(text string, width int) string {
	quoted := fmt.Sprintf("%q", text)
	quoted = strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
	if inner, ok := strings.CutSuffix(quoted, " "); ok {
		quoted = inner + `\x20`
	}
	runes := []rune(quoted)
	if len(runes) > width {
		return string(runes[:max(0, width-1)]) + "…"
	}
	return quoted
}

// Plural is a number and what is counted: "1 slot", "2 slots".
func Plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
