package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"ration/algo"
	"ration/cmd/internal/cli"
	"ration/lease"
)

type chargeCommand struct {
	Key  string        `arg:"" help:"Key in whose windows, and in those of its prefixes, it counts."`
	N    int64         `arg:"" help:"How much was used."`
	Unit string        `help:"Unit that was used. Without it calls." placeholder:"U"`
	Age  time.Duration `help:"How long ago it was used. Buckets and counters count it as of now." default:"0s" placeholder:"D"`
	ID   string        `name:"id" help:"Names the charge: within ten minutes it counts once however often it is told. Without it a new one." placeholder:"ID"`
	doing
}

// Help is the part of the help below the flags' summary.
func (*chargeCommand) Help() string {
	return `Adopts usage made elsewhere: it counts as spent in every window of the key and of its prefixes that counts the unit. What is beyond a limit is debt, up to one limit, and repaid as spends come back. Nothing is given back by charging.

Example:

  coordinator charge acme/prod 250 --reason 'batch of the night' --age 2h
  coordinator charge acme/prod 120000 --unit tokens --id night-2027-01-15

` + cli.Codes
}

func (c *chargeCommand) run(ctx context.Context, _ *cli.Invocation, s cli.Streams) error {
	a := lease.Act{Verb: lease.VerbCharge, Key: lease.Key(c.Key), ID: c.ID, N: c.N, Age: c.Age}
	if c.Unit != algo.Calls {
		a.Unit = c.Unit
	}
	if a.ID == "" {
		a.ID = strconv.FormatUint(rand.Uint64(), 36)
	}
	return c.tell(ctx, s, a, func(done *acted) string {
		if done.Again {
			return fmt.Sprintf("the charge %s of %s had been counted before; it counts once", a.ID, cli.Printable(c.Key, 60))
		}
		var b strings.Builder
		fmt.Fprintf(&b, "charged %s to %s:", unitsOf(a), cli.Printable(c.Key, 60))
		for i := range done.Keys {
			for _, w := range done.Keys[i].Windows {
				if counts(w.Rule, a.Unit) {
					t := row(&w)
					fmt.Fprintf(&b, "\n  %s %s: %s free, %s held, %s spent", cli.Printable(done.Keys[i].name(), 60), cli.Printable(t.rule, 60), t.free, t.held, t.spent)
				}
			}
		}
		return b.String()
	})
}

func unitsOf(a lease.Act) string {
	if a.Unit == "" {
		return cli.Plural(a.N, "call")
	}
	return fmt.Sprintf("%d unit=%s", a.N, a.Unit)
}

// counts says that a rule, as its text, counts the unit; one that this version cannot read may.
func counts(rule, unit string) bool {
	r, err := algo.ParseRule(rule)
	return err != nil || r.CountsTokens() && r.Unit == unit
}
