package measure

import (
	"fmt"
	"io"
)

// Bounds prints what is compared with a bound, and remembers whether all of it
// kept within.
type Bounds struct {
	To    io.Writer
	Short int
}

// AtMost prints a ratio that is to be the bound or less.
func (b *Bounds) AtMost(name string, value, bound float64) {
	b.print(name, value, bound, value <= bound)
}

// AtLeast prints a ratio that is to be the bound or more.
func (b *Bounds) AtLeast(name string, value, bound float64) {
	b.print(name, value, bound, value >= bound)
}

func (b *Bounds) print(name string, value, bound float64, ok bool) {
	verdict := "ok"
	if !ok {
		verdict = "short"
		b.Short++
	}
	fmt.Fprintf(b.To, "ratio %s %.3f %.3g %s\n", name, value, bound, verdict)
}
