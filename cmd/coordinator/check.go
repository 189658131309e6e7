package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"ration/algo"
	"ration/cmd/internal/cli"
	"ration/lease"
)

type checkCommand struct {
	File string `arg:"" help:"Policy file."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Help is the part of the help below the flags' summary.
func (*checkCommand) Help() string {
	return `Prints each limit and each plan with its rules: the worst any trailing window as long as the rule's period can see, the most at one instant, and the most memory a key costs. The guard of a key's limit is that of its plan too; where the keys of a plan have several, the shortest gives the worst window and the longest the memory. Rules that never bind, since a parent allows no more, are named. A bad policy is refused whole, with the line and column of each error.

Example:

  coordinator check ration.yaml

` + cli.Codes
}

func (c *checkCommand) run(_ context.Context, _ *cli.Invocation, s cli.Streams) error {
	p, err := readPolicy(c.File)
	now := algo.Instant(time.Now().UnixNano())
	switch {
	case c.JSON && err != nil:
		if err := printJSON(s, refusedPolicy(c.File, err)); err != nil {
			return err
		}
		return &cli.Exit{Code: cli.Failed}
	case err != nil:
		return err
	case c.JSON:
		return printJSON(s, checkedPolicy(c.File, p, now))
	}
	return printCheck(s, checkedPolicy(c.File, p, now))
}

// checked is what check tells of a file, and its form in JSON.
type checked struct {
	File    string         `json:"file"`
	Good    bool           `json:"good"`
	Unknown string         `json:"unknown,omitempty"`
	Mirror  string         `json:"mirror,omitempty"`
	Limits  []checkedLimit `json:"limits,omitempty"`
	Plans   []checkedPlan  `json:"plans,omitempty"`
	Assign  []assigned     `json:"assign,omitempty"`
	// Loose are the rules that never bind.
	Loose  []looseRule `json:"loose,omitempty"`
	Errors []fault     `json:"errors,omitempty"`
}

type checkedLimit struct {
	Key   string `json:"key"`
	Line  int    `json:"line"`
	Guard string `json:"guard"`
	// Waits is who may wait, as the policy has it; empty for the coordinator's own bound.
	Waits string `json:"waits,omitempty"`
	// Shadow says that its rules count and refuse nothing.
	Shadow bool          `json:"shadow,omitempty"`
	Rules  []checkedRule `json:"rules"`
}

type checkedPlan struct {
	Plan  string `json:"plan"`
	Class string `json:"class,omitempty"`
	Line  int    `json:"line"`
	// Guard and LongestGuard are the shortest and the longest of the limits of its keys.
	Guard        string        `json:"guard"`
	LongestGuard string        `json:"longest_guard"`
	Rules        []checkedRule `json:"rules"`
}

// guards are those of a plan, for people.
func (p *checkedPlan) guards() string {
	if p.Guard != p.LongestGuard {
		return p.Guard + " to " + p.LongestGuard
	}
	return p.Guard
}

type assigned struct {
	Key  string `json:"key"`
	Plan string `json:"plan"`
	Line int    `json:"line"`
}

type checkedRule struct {
	Rule string `json:"rule"`
	// Worst is the most tokens, or of the rule's unit, that any trailing window as long
	// as the rule's period can see, or slots in use at once; Burst the most that are let
	// go at one instant. A rule without a bound has neither.
	Worst     *int64 `json:"worst,omitempty"`
	WorstText string `json:"worst_text"`
	Burst     *int64 `json:"burst,omitempty"`
	BurstText string `json:"burst_text,omitempty"`
	// Memory is the most bytes that the rule keeps for one key.
	Memory int64 `json:"memory"`
}

// looseRule is a rule that never binds, and the one that always binds before it.
type looseRule struct {
	ruleOf
	Under ruleOf `json:"under"`
}

type ruleOf struct {
	Rule string `json:"rule"`
	Key  string `json:"key"`
	Plan string `json:"plan,omitempty"`
	Line int    `json:"line"`
}

func (r ruleOf) String() string {
	text := r.Rule + " of " + cli.Printable(r.Key, 200)
	if r.Plan != "" {
		text = fmt.Sprintf("%s of plan %s for %s", r.Rule, cli.Printable(r.Plan, 200), cli.Printable(r.Key, 200))
	}
	return fmt.Sprintf("%s (line %d)", text, r.Line)
}

type fault struct {
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Problem string `json:"problem"`
	Remedy  string `json:"remedy,omitempty"`
}

func checkedPolicy(file string, p *lease.Policy, now algo.Instant) checked {
	c := checked{File: file, Good: true, Unknown: p.Unknown.String(), Mirror: p.Mirror.String()}
	for _, l := range p.Limits {
		limit := checkedLimit{Key: l.Pattern.String(), Line: l.Line, Guard: l.Guard.String(), Shadow: l.Shadow}
		if len(l.Waiting.Classes) > 0 {
			limit.Waits = l.Waiting.String()
		}
		for _, r := range l.Rules {
			limit.Rules = append(limit.Rules, checkRule(r, l.Guard, l.Guard, now))
		}
		c.Limits = append(c.Limits, limit)
	}
	for i := range p.Plans {
		plan := &p.Plans[i]
		shortest, longest := p.Guards(plan)
		checked := checkedPlan{Plan: plan.Name, Class: plan.Class, Line: plan.Line, Guard: shortest.String(), LongestGuard: longest.String()}
		for _, r := range plan.Rules {
			checked.Rules = append(checked.Rules, checkRule(r, shortest, longest, now))
		}
		c.Plans = append(c.Plans, checked)
	}
	for _, a := range p.Assigned {
		c.Assign = append(c.Assign, assigned{a.Pattern.String(), a.Plan.Name, a.Line})
	}
	for _, l := range p.Loose() {
		c.Loose = append(c.Loose, looseRule{
			ruleOf{l.Rule.String(), l.Key.String(), l.Plan, l.Line},
			ruleOf{l.Under.String(), l.UnderKey.String(), l.UnderPlan, l.UnderLine},
		})
	}
	return c
}

// refusedPolicy lists what is wrong with a file.
func refusedPolicy(file string, err error) checked {
	c := checked{File: file}
	var walk func(error)
	walk = func(err error) {
		var joined interface{ Unwrap() []error }
		var at *lease.PolicyError
		switch {
		case errors.As(err, &joined):
			for _, e := range joined.Unwrap() {
				walk(e)
			}
		case errors.As(err, &at):
			c.Errors = append(c.Errors, fault{at.Line, at.Column, at.Problem, at.Remedy})
		default:
			c.Errors = append(c.Errors, fault{Problem: err.Error()})
		}
	}
	walk(err)
	return c
}

func printJSON(s cli.Streams, v any) error {
	e := json.NewEncoder(s.Out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func printCheck(s cli.Streams, c checked) error {
	unknown := "refused"
	if c.Unknown == lease.AllowUnknown.String() {
		unknown = "not limited"
	}
	has := cli.Plural(len(c.Limits), "limit")
	if len(c.Plans) > 0 {
		has += ", " + cli.Plural(len(c.Plans), "plan")
	}
	fmt.Fprintf(s.Out, "%s is good: %s; a key that none names is %s\n", c.File, has, unknown)
	if c.Mirror == lease.AvailableMirror.String() {
		fmt.Fprintln(s.Out, "mirror: available: while the mirror is away grants go on, and are forgotten if the leader dies then")
	}
	for _, l := range c.Limits {
		printHead(s, l.Key, l.Line, l.Guard)
		if err := printRules(s, l.Rules); err != nil {
			return err
		}
		if l.Waits != "" {
			fmt.Fprintf(s.Out, "  line: %s\n", l.Waits)
		}
		if l.Shadow {
			fmt.Fprintln(s.Out, "  in shadow: it counts what it would refuse, and refuses nothing")
		}
	}
	for _, plan := range c.Plans {
		printHead(s, "plan "+plan.Plan, plan.Line, plan.guards())
		if err := printRules(s, plan.Rules); err != nil {
			return err
		}
		if plan.Class != "" {
			fmt.Fprintf(s.Out, "  class %s\n", plan.Class)
		}
		for _, a := range c.Assign {
			if a.Plan == plan.Plan {
				fmt.Fprintf(s.Out, "  of %s\n", cli.Printable(a.Key, 200))
			}
		}
	}
	if len(c.Loose) > 0 {
		fmt.Fprintln(s.Out, "\nThese never bind, since others that count the same allow no more:")
	}
	for _, l := range c.Loose {
		fmt.Fprintf(s.Out, "  %v: %v\n", l.ruleOf, l.Under)
	}
	return nil
}

func printHead(s cli.Streams, of string, line int, guard string) {
	fmt.Fprintf(s.Out, "\n%s  (line %d", cli.Printable(of, 200), line)
	if guard != "0s" {
		fmt.Fprintf(s.Out, ", guard %s", guard)
	}
	fmt.Fprintln(s.Out, ")")
}

func printRules(s cli.Streams, rules []checkedRule) error {
	w := tabwriter.NewWriter(s.Out, 0, 0, 3, ' ', 0)
	for _, r := range rules {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s a key\n", r.Rule, r.WorstText, r.BurstText, bytesText(r.Memory))
	}
	return w.Flush()
}
