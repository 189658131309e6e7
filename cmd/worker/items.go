package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// item is one line of input.
type item struct {
	number int
	text   string
}

// items reads lines and hands them out one at a time.
type items struct {
	out chan item
	// What follows is set when out is closed.
	pending *item // a line that nobody took
	last    int   // number of the last line that was handed out, or of pending
	all     bool  // nothing comes after that
	err     error // why the input could not be read on
}

// eofWait is how long the end of the input is looked for once nothing more of it
// is wanted, just to say whether something is left.
const eofWait = 50 * time.Millisecond

// readItems hands out the lines of in until ctx ends, but for blank ones, which
// count as lines all the same. A line ends with LF or CR LF; the last one may lack
// it. When ctx ends while in gives nothing, the goroutine that waits for it is left
// behind, since a read cannot be called off.
func readItems(ctx context.Context, in io.Reader) *items {
	i := &items{out: make(chan item)}
	lines, fault, quit := make(chan item), make(chan error, 1), make(chan struct{})
	go func() {
		defer close(lines)
		if err := readLines(in, lines, quit); err != nil {
			fault <- err
		}
	}()
	go func() {
		defer close(i.out)
		defer close(quit)
		i.pass(ctx, lines, fault)
	}()
	return i
}

// readLines sends lines until quit is closed.
func readLines(in io.Reader, lines chan<- item, quit <-chan struct{}) error {
	reader := bufio.NewReader(in)
	for n := 1; ; n++ {
		text, err := reader.ReadString('\n')
		if err != nil && err != io.EOF {
			return fmt.Errorf("reading line %d of the input: %w", n, err)
		}
		if text == "" {
			return nil
		}
		text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
		if strings.TrimSpace(text) == "" {
			continue
		}
		select {
		case lines <- item{n, text}:
		case <-quit:
			return nil
		}
	}
}

// pass hands lines on, and keeps account of what nobody takes.
func (i *items) pass(ctx context.Context, lines <-chan item, fault <-chan error) {
	for {
		select {
		case next, ok := <-lines:
			if !ok {
				i.end(fault)
				return
			}
			i.last = next.number
			select {
			case i.out <- next:
				continue
			case <-ctx.Done():
				i.pending = &next
			}
		case <-ctx.Done():
		}
		break
	}
	select {
	case _, more := <-lines:
		if !more {
			i.end(fault)
		}
	case <-time.After(eofWait):
	}
}

// end notes how the input ended.
func (i *items) end(fault <-chan error) {
	select {
	case i.err = <-fault:
	default:
		i.all = true
	}
}
