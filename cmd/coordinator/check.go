package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"

	"ration/cmd/internal/cli"
	"ration/lease"
)

type checkCommand struct {
	File string `arg:"" help:"Policy file."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Help is the part of the help below the flags' summary.
func (*checkCommand) Help() string {
	return `Prints each limit with its rules: the worst any window as long as the rule's period can see, and the memory a key costs. Rules that never bind, since a parent allows no more, are named. A bad policy is refused whole, with the line and column of each error.

Example:

  coordinator check ration.yaml

` + cli.Codes
}

func (c *checkCommand) run(_ context.Context, _ *cli.Invocation, s cli.Streams) error {
	p, err := readPolicy(c.File)
	switch {
	case c.JSON && err != nil:
		if err := printJSON(s, refusedPolicy(c.File, err)); err != nil {
			return err
		}
		return &cli.Exit{Code: cli.Failed}
	case err != nil:
		return err
	case c.JSON:
		return printJSON(s, checkedPolicy(c.File, p))
	}
	return printCheck(s, checkedPolicy(c.File, p))
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
	Key   string        `json:"key"`
	Line  int           `json:"line"`
	Guard string        `json:"guard"`
	Rules []checkedRule `json:"rules"`
}

type checkedPlan struct {
	Plan  string        `json:"plan"`
	Line  int           `json:"line"`
	Rules []checkedRule `json:"rules"`
}

type assigned struct {
	Key  string `json:"key"`
	Plan string `json:"plan"`
	Line int    `json:"line"`
}

type checkedRule struct {
	Rule string `json:"rule"`
	// Worst is the most tokens, or of the rule's unit, that any window of the rule's
	// period can see, or slots in use at once; a rule without a bound has none.
	Worst     *int64 `json:"worst,omitempty"`
	WorstText string `json:"worst_text"`
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

func checkedPolicy(file string, p *lease.Policy) checked {
	c := checked{File: file, Good: true, Unknown: p.Unknown.String(), Mirror: p.Mirror.String()}
	for _, l := range p.Limits {
		limit := checkedLimit{Key: l.Pattern.String(), Line: l.Line, Guard: l.Guard.String()}
		for _, r := range l.Rules {
			limit.Rules = append(limit.Rules, checkRule(r, l.Guard))
		}
		c.Limits = append(c.Limits, limit)
	}
	for _, plan := range p.Plans {
		checked := checkedPlan{Plan: plan.Name, Line: plan.Line}
		for _, r := range plan.Rules {
			checked.Rules = append(checked.Rules, checkRule(r, 0))
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
		fmt.Fprintf(s.Out, "\n%s  (line %d", cli.Printable(l.Key, 200), l.Line)
		if l.Guard != "0s" {
			fmt.Fprintf(s.Out, ", guard %s", l.Guard)
		}
		fmt.Fprintln(s.Out, ")")
		if err := printRules(s, l.Rules); err != nil {
			return err
		}
	}
	for _, plan := range c.Plans {
		fmt.Fprintf(s.Out, "\nplan %s  (line %d)\n", cli.Printable(plan.Plan, 200), plan.Line)
		if err := printRules(s, plan.Rules); err != nil {
			return err
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

func printRules(s cli.Streams, rules []checkedRule) error {
	w := tabwriter.NewWriter(s.Out, 0, 0, 3, ' ', 0)
	for _, r := range rules {
		fmt.Fprintf(w, "  %s\t%s\t%s a key\n", r.Rule, r.WorstText, bytesText(r.Memory))
	}
	return w.Flush()
}
