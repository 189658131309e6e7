package harness

import (
	"io"
	"math"
	"os"
	"sync"
)

// capture is a file without a name that a process writes to. A pipe would stay
// open as long as any child of the process holds it, and with it the wait for
// the process's end.
type capture struct {
	file *os.File

	mu     sync.Mutex
	closed bool
	text   string // once closed
}

func newCapture() (*capture, error) {
	f, err := os.CreateTemp("", "ration-out-")
	if err != nil {
		return nil, err
	}
	return &capture{file: f}, os.Remove(f.Name())
}

func (c *capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.text
	}
	return c.read()
}

func (c *capture) read() string {
	text, err := io.ReadAll(io.NewSectionReader(c.file, 0, math.MaxInt64))
	if err != nil {
		return string(text) + "\n(reading on: " + err.Error() + ")\n"
	}
	return string(text)
}

func (c *capture) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.text, c.closed = c.read(), true
		c.file.Close()
	}
}
