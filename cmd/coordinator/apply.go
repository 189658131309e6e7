package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"ration/bus"
	"ration/cmd/internal/cli"
	"ration/coordinator"
	"ration/lease"
)

type applyCommand struct {
	File string `arg:"" help:"Policy file."`
	asking
}

// Help is the part of the help below the flags' summary.
func (*applyCommand) Help() string {
	return `Puts a policy into force in the whole cell, at once: windows keep what they count, and who waits is looked at anew. The same policy again changes nothing, and one that is wrong is refused whole. It stays in force, whatever the files of coordinators say, until one of these changes.

Example:

  coordinator apply ration.yaml

` + cli.Codes
}

func (c *applyCommand) run(ctx context.Context, _ *cli.Invocation, s cli.Streams) error {
	p, err := readPolicy(c.File)
	if err != nil {
		return err
	}
	return c.connected(ctx, s, "coordinator apply", func(ctx context.Context, client *bus.Client, d *document) error {
		wanted := bus.Policy{File: c.File, Text: p.String(), Least: d.revision() + 1}
		return each[applied](ctx, &c.asking, s.Out, d, "the policy is in force", "apply it again", func(ctx context.Context, n int) (json.RawMessage, error) {
			return c.led(ctx, func(ctx context.Context) (json.RawMessage, error) { return client.Apply(ctx, n, wanted) })
		})
	})
}

// applied is what a leader answers that has taken a policy.
type applied struct {
	V        int    `json:"v"`
	Leader   string `json:"leader"`
	Revision uint64 `json:"revision"`
	// Changed says that another one was in force before.
	Changed bool `json:"changed"`
}

func (a applied) String() string {
	who := cli.Printable(a.Leader, 60)
	if !a.Changed {
		return fmt.Sprintf("the policy is in force already, as revision %d (%s)", a.Revision, who)
	}
	return fmt.Sprintf("the policy is in force as revision %d (%s)", a.Revision, who)
}

// revision is the highest of any partition.
func (d *document) revision() (highest uint64) {
	for _, p := range d.Partitions {
		highest = max(highest, p.Policy)
	}
	return highest
}

// apply lets a leader take a policy that came over NATS.
func (s *site) apply(ctx context.Context, l *coordinator.Leader, p bus.Policy) (applied, error) {
	policy, err := lease.ParsePolicy(p.File, []byte(p.Text))
	if err != nil {
		return applied{}, fmt.Errorf("%w: policy %s is refused:\n%w", lease.ErrBadRequest, cli.Printable(p.File, 80), err)
	}
	before := l.Policy().Revision
	revision, err := l.Change(ctx, policy, p.Least)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: the leader has not all that its mirror has, or its mirror not all that it has", lease.ErrMirrorAway)
	}
	if err != nil {
		return applied{}, err
	}
	return applied{V: bus.Format, Leader: s.name, Revision: revision, Changed: revision > before}, nil
}

const (
	// reformEvery is how often it is tried to put a file that has changed into force where nobody
	// leads, and after reformTold people are told.
	reformEvery = 250 * time.Millisecond
	reformTold  = 30 * time.Second
)

// reform puts a policy of a file into force in all partitions, whoever leads them. It tries
// until that is so, a later policy is in force anywhere, or ctx ends.
func (c *cell) reform(ctx context.Context, p *lease.Policy) {
	wanted := bus.Policy{File: c.file.name, Text: p.String(), Least: c.site.revision() + 1}
	left, told := slices.Clone(c.site.parts), time.Now().Add(reformTold)
	tick := time.NewTicker(reformEvery)
	defer tick.Stop()
	for {
		if later := c.site.revision(); later > wanted.Least {
			c.voice.Log.Warn("the policy file has changed, and a later policy is in force; apply it again if it is meant", "file", wanted.File, "revision", later)
			return
		}
		var failures []error
		left = slices.DeleteFunc(left, func(p *part) bool {
			revision, err := c.reformPart(ctx, p, wanted)
			if err != nil {
				failures = append(failures, c.site.of(p, err))
			}
			wanted.Least = max(wanted.Least, revision)
			return err == nil
		})
		switch {
		case len(left) == 0:
			return
		case !told.IsZero() && time.Now().After(told):
			told = time.Time{}
			c.voice.Log.Error("the policy file has changed, and is not in force everywhere; it is tried on", "file", wanted.File, "error", errors.Join(failures...))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// reformPart puts a policy into force in a partition that is led here, or elsewhere, and
// gives its revision.
func (c *cell) reformPart(ctx context.Context, p *part, wanted bus.Policy) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if l := p.leader.Load(); l != nil {
		a, err := c.site.apply(ctx, l, wanted)
		return a.Revision, err
	}
	var a applied
	body, err := c.link.client.Apply(ctx, p.n, wanted)
	if err == nil {
		err = json.Unmarshal(body, &a)
	}
	return a.Revision, err
}

// revision is the highest of any partition, as far as this process knows.
func (s *site) revision() (highest uint64) {
	for _, p := range s.parts {
		highest = max(highest, p.revision())
	}
	return highest
}

// revision is that of the policy in force, as far as this process knows.
func (p *part) revision() uint64 { return p.inForce().Revision }

// inForce is the policy in force, as far as this process knows.
func (p *part) inForce() coordinator.InForce {
	if l := p.leader.Load(); l != nil {
		return l.Policy()
	}
	if coord := p.coord.Load(); coord != nil {
		return coord.Policy()
	}
	return coordinator.InForce{}
}

// compare warns, once it is known which policy is in force, where that is not the file's: the
// mirror has it from before.
func (c *cell) compare(ctx context.Context) {
	tick := time.NewTicker(reformEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		force := c.site.parts[0].inForce()
		if force.Revision == 0 {
			continue
		}
		if c.file.differs(force.Policy) {
			c.voice.Log.Warn("the policy in force is not that of the file, which counts when it changes; put it into force with coordinator apply", "revision", force.Revision, "file", c.file.name)
		}
		return
	}
}
