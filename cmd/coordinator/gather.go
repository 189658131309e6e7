package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"ration/bus"
	"ration/cmd/internal/cli"
	"ration/lease"
)

const (
	// askWait is how long the leader of a partition elsewhere has to tell its status: less
	// than those wait who ask for all.
	askWait = 300 * time.Millisecond
	// maxKeys is how many keys the status of a cell has at most, as many as that of one
	// partition.
	maxKeys = 500
)

// Problems of a partition, for people.
const (
	nobodyLeads   = "nobody leads it"
	leaderIsStill = "its leader does not answer"
	leaderWaits   = "its leader waits for its mirror, which does not answer"
)

// document gives the status of the cell, or of a key, as it goes out over NATS: of each
// partition from whoever leads it.
func (s *site) document(ctx context.Context, key lease.Key) (any, error) {
	parts := s.parts
	if key != "" {
		parts = parts[bus.Partition(bus.Token(key.Tenant()), len(parts)):][:1]
	}
	documents := make([]*document, len(parts))
	var asking sync.WaitGroup
	for i, p := range parts {
		asking.Go(func() { documents[i] = s.tell(ctx, p, key) })
	}
	asking.Wait()
	all := s.gather(documents)
	switch {
	case all.Leader != "" || key != "":
	case slices.ContainsFunc(parts, (*part).waits):
		return nil, fmt.Errorf("%w; this coordinator has the seat, and answers nothing until then", lease.ErrMirrorAway)
	default:
		return nil, fmt.Errorf("%w: nobody leads any more", lease.ErrStopped)
	}
	return all, nil
}

// tell gives the status of one partition. Where that cannot be had its document says why.
func (s *site) tell(ctx context.Context, p *part, key lease.Key) *document {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	d, err := s.partition(ctx, p, key)
	if s.ask != nil && (errors.Is(err, errNotLeading) || errors.Is(err, lease.ErrStopped)) {
		d, err = s.elsewhere(ctx, p.n, key)
	}
	switch {
	case err == nil:
		return d
	case p.waits():
		return missing(p.n, leaderWaits)
	case errors.Is(err, errNotLeading), errors.Is(err, lease.ErrStopped), errors.Is(err, lease.ErrNoCoordinator):
		return missing(p.n, nobodyLeads)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return missing(p.n, leaderIsStill)
	}
	return missing(p.n, cli.Printable(err.Error(), 200))
}

// elsewhere asks who leads a partition.
func (s *site) elsewhere(ctx context.Context, n int, key lease.Key) (*document, error) {
	body, err := s.ask(ctx, n, key)
	if err != nil {
		return nil, err
	}
	d, err := parseDocument(body)
	if err == nil && d.V != bus.Format {
		err = fmt.Errorf("%w: its leader tells its status in format %d, this side speaks %d", lease.ErrFormat, d.V, bus.Format)
	}
	return d, err
}

func missing(n int, problem string) *document {
	return &document{Partitions: []partition{{N: n, Problem: problem}}}
}

// partition gives the status of a partition that is led here.
func (s *site) partition(ctx context.Context, p *part, key lease.Key) (*document, error) {
	l := p.leader.Load()
	if l == nil {
		return nil, errNotLeading
	}
	status, err := p.status(ctx, key)
	if err != nil {
		return nil, err
	}
	d := newDocument(status)
	d.Cell = s.cell
	d.Leader = s.name
	d.Version = cli.Version()
	d.State = s.state
	d.Divided = len(s.parts)
	d.Problem = s.file.problem()
	force := l.Policy()
	d.Unknown = key != "" && force.Policy.Unknown == lease.RefuseUnknown && len(force.Policy.Match(key)) == 0
	d.Partitions = []partition{{N: p.n, Leader: s.name, Epoch: l.Epoch().Number, Policy: force.Revision, Behind: newBehind(l)}}
	return d, nil
}

// gather puts the documents of partitions together. What a cell has one of is that of the
// first partition that tells it.
func (s *site) gather(documents []*document) *document {
	all := newDocument(lease.Status{})
	all.Cell, all.Version, all.State, all.Divided = s.cell, cli.Version(), s.state, len(s.parts)
	for _, d := range documents {
		all.Partitions = append(all.Partitions, d.Partitions...)
		all.Leader = cmp.Or(all.Leader, d.Leader)
		all.Problem = cmp.Or(all.Problem, d.Problem)
		all.Leases += d.Leases
		all.Waiting += d.Waiting
		all.addClasses(d.Classes)
		all.Held.add(d.Held)
		all.Keys = append(all.Keys, d.Keys...)
		all.More += d.More
		all.Unknown = all.Unknown || d.Unknown
		if d.Clock != nil && (all.Clock == nil || d.Clock.Wider > all.Clock.Wider) {
			all.Clock = d.Clock
		}
	}
	slices.SortStableFunc(all.Keys, func(a, b keyState) int { return strings.Compare(a.name(), b.name()) })
	if over := len(all.Keys) - maxKeys; over > 0 && len(documents) > 1 {
		all.Keys, all.More = all.Keys[:maxKeys], all.More+over
	}
	return all
}
