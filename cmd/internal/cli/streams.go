package cli

import (
	"io"
	"os"
	"strings"
)

// Streams is what a command has of its process.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	// Environ holds the environment as "NAME=value".
	Environ []string
}

// Process gives the streams of this process.
func Process() Streams {
	return Streams{os.Stdin, os.Stdout, os.Stderr, os.Environ()}
}

// Getenv gives a variable of the environment. An empty one counts as unset.
func (s Streams) Getenv(name string) (string, bool) {
	value := ""
	for _, line := range s.Environ { // the last one holds, as for a shell
		if n, v, ok := strings.Cut(line, "="); ok && n == name {
			value = v
		}
	}
	return value, value != ""
}
