package main

import (
	"strconv"
	"strings"

	"ration"
	"ration/algo"
	"ration/cmd/internal/cli"
	"ration/lease"
)

// parseUnits reads what --unit says: NAME=N each, no name twice.
func parseUnits(texts []string) (ration.Units, error) {
	var units ration.Units
	for _, text := range texts {
		name, amount, ok := strings.Cut(text, "=")
		if !ok {
			return nil, cli.Misuse("--unit %.40q is not NAME=N; write for example --unit tokens=1200", text)
		}
		if fault := algo.UnitFault(name); fault != "" {
			return nil, cli.Misuse("--unit %.40q: %s; %s", text, fault, algo.UnitRemedy)
		}
		n, err := strconv.ParseInt(amount, 10, 64)
		switch _, twice := units[name]; {
		case err != nil || n < 1 || n > algo.MaxLimit:
			return nil, cli.Misuse("--unit %.40q: the amount is no whole number from 1 to %d", text, algo.MaxLimit)
		case name == algo.Calls:
			return nil, cli.Misuse("--unit %.40q: calls are what --cost counts", text)
		case twice:
			return nil, cli.Misuse("--unit %s is given twice; give the sum", name)
		case len(units) == lease.MaxUnits:
			return nil, cli.Misuse("--unit is given for more than %d units, the most a call may cost", lease.MaxUnits)
		case units == nil:
			units = ration.Units{}
		}
		units[name] = n
	}
	return units, nil
}

// costFlag is the flag that says how much a call costs of what a rule, as its text,
// counts.
func costFlag(rule string) string {
	if r, err := algo.ParseRule(rule); err == nil && r.Unit != "" {
		return "--unit " + r.Unit + "=N"
	}
	return "--cost"
}
