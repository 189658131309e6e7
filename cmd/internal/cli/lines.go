package cli

import (
	"bytes"
	"io"
)

// maxLine is how long a line may grow before it is passed on in pieces.
const maxLine = 1 << 20

// Lines passes on what is written to it in whole lines, each in one Write. It
// belongs to one goroutine; several Lines may share a destination that takes
// one Write at a time.
type Lines struct {
	to  io.Writer
	buf []byte
}

// NewLines gives a Lines to w.
func NewLines(w io.Writer) *Lines { return &Lines{to: w} }

// Write takes p and passes on the lines that are whole.
func (l *Lines) Write(p []byte) (int, error) {
	l.buf = append(l.buf, p...)
	end := bytes.LastIndexByte(l.buf, '\n') + 1
	if end == 0 && len(l.buf) >= maxLine {
		end = len(l.buf)
	}
	if end == 0 {
		return len(p), nil
	}
	_, err := l.to.Write(l.buf[:end])
	l.buf = append(l.buf[:0], l.buf[end:]...)
	return len(p), err
}

// Close passes on what is left and ends its line.
func (l *Lines) Close() error {
	if len(l.buf) == 0 {
		return nil
	}
	_, err := l.to.Write(append(l.buf, '\n'))
	l.buf = nil
	return err
}
