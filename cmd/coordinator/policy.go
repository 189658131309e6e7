package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"ration/cmd/internal/cli"
	"ration/lease"
)

const (
	// defaultPolicy is the policy file of who names none.
	defaultPolicy = "ration.yaml"
	// maxPolicy is one byte more than ParsePolicy takes, so that it sees that a
	// file is too large.
	maxPolicy = 1<<20 + 1
)

// choosePolicy gives the policy of a file, or of ./ration.yaml if file is empty
// and that exists, or else the demo policy. origin says which for people.
func choosePolicy(file string) (p *lease.Policy, origin string, err error) {
	if file == "" {
		p, err := readPolicy(defaultPolicy)
		if errors.Is(err, errMissing) {
			return lease.Demo(), "the built-in demo policy, since there is no ./" + defaultPolicy, nil
		}
		return p, defaultPolicy, err
	}
	p, err = readPolicy(file)
	if errors.Is(err, errMissing) {
		err = fmt.Errorf("%w, or leave --policy out for ./%s or the demo policy", err, defaultPolicy)
	}
	return p, file, err
}

// readPolicy reads the policy of a file.
func readPolicy(file string) (*lease.Policy, error) {
	text, err := readBounded(file)
	return parsePolicy(file, text, err)
}

// parsePolicy gives the policy of the text of a file, or says why there is none.
func parsePolicy(file string, text []byte, err error) (*lease.Policy, error) {
	switch {
	case file == "":
		return nil, cli.Misuse("the name of the policy file is empty; give one")
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("policy %s: %w", file, errMissing)
	case errors.Is(err, syscall.EISDIR):
		return nil, fmt.Errorf("policy %s: it is a folder; name the file in it", file)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("policy %s: reading it is not permitted; allow it, or run as who may", file)
	case errors.Is(err, errOnce):
		return nil, fmt.Errorf("policy %s: %w; change the policy with coordinator apply", file, err)
	case err != nil:
		return nil, fmt.Errorf("policy %s: %w; name a file that can be read", file, err)
	}
	p, err := lease.ParsePolicy(file, text)
	if err != nil {
		return nil, fmt.Errorf("policy %s is refused:\n%w", file, err)
	}
	return p, nil
}

func readBounded(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxPolicy))
}

// readAgain reads a file that can be read again and again: a pipe would hang.
func readAgain(file string) ([]byte, error) {
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, errOnce
	}
	return readBounded(file)
}

// errOnce says that a policy file is none that could change.
var errOnce = errors.New("it is no file that can be read again")

// errMissing says that a policy file does not exist.
var errMissing = errors.New("there is no such file; write it, or check the path")
