package main

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"ration/cmd/internal/cli"
	"ration/lease"
)

const (
	// lookEvery is how often the policy file is looked at, and stableFor how long it has to
	// be the same: who writes it in pieces has then surely ended, or will be refused.
	lookEvery = 100 * time.Millisecond
	stableFor = 500 * time.Millisecond
	// readEvery is how often it is read although it looks the same: clocks of file systems
	// are coarse.
	readEvery = 2 * time.Second
)

// policyFile is a file whose content counts when it changes. It is looked at again and
// again, by its name: whoever renames another file over it, or turns a link elsewhere, has
// changed it. What was read at first does not count, nor does what is missing, empty,
// wrong, or still being written. A pipe is read once, and never changes.
type policyFile struct {
	name  string
	first string // what there was at first
	read  func(name string) ([]byte, error)
	taken string // what counted last
	seen  string // what there was last, since then
	since time.Time
	told  string       // what was refused last
	known os.FileInfo  // as it was read last
	at    time.Time    // when that was
	wrong atomic.Value // string: what is wrong with the file; empty for nothing
}

// nothing is no content of a file.
const nothing = "\x00"

// newPolicyFile gives the file that was read as p.
func newPolicyFile(name string, p *lease.Policy) *policyFile {
	f := &policyFile{name: name, read: readAgain, taken: nothing, seen: nothing, told: nothing}
	f.wrong.Store("")
	f.first = f.content()
	now, err := lease.ParsePolicy(name, []byte(f.first))
	if strings.HasPrefix(f.first, nothing) || err == nil && now.String() == p.String() { // else it has changed already
		f.taken, f.seen = f.first, f.first
	}
	return f
}

// problem says what is wrong with the file, or nothing, also where there is no file.
func (f *policyFile) problem() string {
	if f == nil {
		return ""
	}
	return f.wrong.Load().(string)
}

// differs says that the file was another policy at first, and is now, than the one in force.
func (f *policyFile) differs(force *lease.Policy) bool {
	for _, text := range []string{f.first, f.content()} {
		if p, err := lease.ParsePolicy(f.name, []byte(text)); err != nil || p.String() == force.String() {
			return false // or it is none, and what is wrong is told elsewhere
		}
	}
	return true
}

// look gives the policy of a file that has changed, once, or says once what is wrong.
func (f *policyFile) look(now time.Time) (*lease.Policy, error) {
	if f.settled(now) {
		return nil, nil
	}
	text := f.content()
	if text != f.seen {
		f.seen, f.since = text, now
	}
	switch {
	case text == f.taken:
		f.wrong.Store("")
		f.told = nothing
		return nil, nil
	case text == f.told, now.Sub(f.since) < stableFor:
		return nil, nil
	}
	return f.take()
}

// content is what is in the file, or why it cannot be read.
func (f *policyFile) content() string { return content(f.read(f.name)) }

func content(text []byte, err error) string {
	if err != nil {
		return nothing + err.Error() // which no policy is
	}
	return string(text)
}

// settled says that the file looks as it did when it was read, which counted or was
// refused.
func (f *policyFile) settled(now time.Time) bool {
	info, err := os.Stat(f.name)
	same := err == nil && f.known != nil && os.SameFile(info, f.known) && info.Size() == f.known.Size() && info.ModTime().Equal(f.known.ModTime())
	if same && (f.seen == f.taken || f.seen == f.told) && now.Sub(f.at) < readEvery {
		return true
	}
	if f.known = nil; err == nil {
		f.known = info
	}
	f.at = now
	return false
}

// take reads the file at once.
func (f *policyFile) take() (*lease.Policy, error) {
	raw, err := f.read(f.name)
	text := content(raw, err)
	p, err := parsePolicy(f.name, raw, err)
	if err != nil {
		f.seen, f.told = text, text
		f.wrong.Store(err.Error())
		return nil, err
	}
	f.taken, f.seen, f.told = text, text, nothing
	f.wrong.Store("")
	return p, nil
}

// watch looks at the file until ctx ends, and at once when asked. What counts is put into
// force, one after the other: apply ends when there is something later.
func (f *policyFile) watch(ctx context.Context, now <-chan os.Signal, voice *cli.Voice, apply func(context.Context, *lease.Policy)) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	stop := func() {}
	defer func() { stop() }()
	for {
		var p *lease.Policy
		var err error
		select {
		case <-ctx.Done():
			return
		case <-now:
			p, err = f.take()
		case at := <-tick.C:
			p, err = f.look(at)
		}
		switch {
		case err != nil:
			voice.Log.Error("the policy file is not taken; the policy in force stays", "error", err)
		case p != nil:
			stop()
			applying, cancel := context.WithCancel(ctx)
			done := make(chan struct{})
			go func() {
				defer close(done)
				apply(applying, p)
			}()
			stop = func() {
				cancel()
				<-done
			}
		}
	}
}
