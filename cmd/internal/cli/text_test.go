package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// chunks records each Write.
type chunks struct{ all []string }

func (c *chunks) Write(p []byte) (int, error) {
	c.all = append(c.all, string(p))
	return len(p), nil
}

func TestLinesAreNeverTorn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.StringMatching(`[ab\n]{0,6}`)).Draw(t, "pieces")
		var got chunks
		l := NewLines(&got)
		for _, piece := range pieces {
			n, err := l.Write([]byte(piece))
			require.NoError(t, err)
			require.Equal(t, len(piece), n)
		}
		require.NoError(t, l.Close())
		for _, write := range got.all {
			require.True(t, strings.HasSuffix(write, "\n"), "%q", write)
		}
		want := strings.Join(pieces, "")
		if want != "" && !strings.HasSuffix(want, "\n") {
			want += "\n"
		}
		require.Equal(t, want, strings.Join(got.all, ""))
	})
}

func TestLongLineIsPassedOnInPieces(t *testing.T) {
	var got bytes.Buffer
	l := NewLines(&got)
	_, err := l.Write(bytes.Repeat([]byte("x"), maxLine))
	require.NoError(t, err)
	require.Equal(t, maxLine, got.Len())
}

func TestPrintableNeverActsOnTheTerminalNorIsTooWide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "text"))
		width := rapid.IntRange(1, 40).Draw(t, "width")
		got := Printable(text, width)
		require.LessOrEqual(t, utf8.RuneCountInString(got), width)
		require.True(t, utf8.ValidString(got))
		require.NotContains(t, got, "\x1b")
		require.NotContains(t, got, "\n")
	})
}

func TestPrintableTextsThatDifferLookDifferent(t *testing.T) {
	part := rapid.SampledFrom([]string{" ", `\`, `"`, `'`, "\n", "\x00", "\xff", "\ufffd", "x", "20", `\x20`, "é", "e\u0301", "n", "/"})
	text := func(t *rapid.T, label string) string {
		return strings.Join(rapid.SliceOfN(part, 1, 4).Draw(t, label), "")
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := text(t, "a"), text(t, "b")
		require.Equal(t, a == b, Printable(a, 100) == Printable(b, 100), "%q and %q", a, b)
		require.Equal(t, strings.TrimSuffix(Printable(a, 100), " "), Printable(a, 100))
	})
}

func TestOneIsNotMany(t *testing.T) {
	require.Equal(t, "0 slots, 1 slot, 2 slots", Plural(0, "slot")+", "+Plural(1, "slot")+", "+Plural(int64(2), "slot"))
}

func TestScreenErasesTheLineBeforeOthers(t *testing.T) {
	var b bytes.Buffer
	s := &Screen{err: &b, live: true}
	w := s.Through(&b)
	s.Draw("1 done")
	fmt.Fprintln(w, "told")
	fmt.Fprintln(w, "again")
	s.Draw("2 done")
	s.Erase()
	s.Erase()
	require.Equal(t, "\r\x1b[K1 done\r\x1b[Ktold\nagain\n\r\x1b[K2 done\r\x1b[K", b.String())

	b.Reset()
	dark := NewScreen(Streams{Err: &b})
	dark.Draw("1 done")
	dark.Erase()
	require.Empty(t, b.String(), "no terminal, no line")
}
