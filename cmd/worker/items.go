package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
)

// item is one line of input.
type item struct {
	number int
	text   string
}

// items reads lines and hands them out one at a time. No line is read before
// the one before it was taken.
type items struct {
	out chan item
	// What follows is set when out is closed.
	read    int   // lines read
	pending *item // the line that was read and not taken
	all     bool  // the input was read to its end
	err     error // why it could not be read
}

// readItems hands out the lines of in until ctx ends. A line ends with LF or
// CR LF; the last one may lack it. When ctx ends while in gives nothing, the
// goroutine that waits for it is left behind, since a read cannot be called off.
func readItems(ctx context.Context, in io.Reader) *items {
	i := &items{out: make(chan item)}
	lines := make(chan item)
	fault := make(chan error, 1)
	go func() {
		defer close(lines)
		reader := bufio.NewReader(in)
		for n := 1; ; n++ {
			text, err := reader.ReadString('\n')
			if err != nil && err != io.EOF {
				fault <- fmt.Errorf("reading line %d of the input: %w", n, err)
				return
			}
			if text == "" {
				return
			}
			text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
			select {
			case lines <- item{n, text}:
			case <-ctx.Done():
				return
			}
		}
	}()
	go i.pass(ctx, lines, fault)
	return i
}

// pass hands lines on, and keeps account of the one that nobody takes.
func (i *items) pass(ctx context.Context, lines <-chan item, fault <-chan error) {
	defer close(i.out)
	for {
		var next item
		var ok bool
		select {
		case next, ok = <-lines:
		case <-ctx.Done():
			return
		}
		if !ok {
			select {
			case i.err = <-fault:
			default:
				i.all = ctx.Err() == nil
			}
			return
		}
		i.read = next.number
		select {
		case i.out <- next:
		case <-ctx.Done():
			i.pending = &next
			return
		}
	}
}
