package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"ration/integration/oracle"
)

// wait is how long after at something leaves the rule so that a load below its
// most is possible again; with a load below that already, how long until the
// first of what it counts leaves. It is 0 for concurrency, where nobody knows.
func wait(r oracle.Rule, arrivals []oracle.Spend, at, load int64) time.Duration {
	switch r.Kind {
	case oracle.Concurrent:
		return 0
	case oracle.Fixed, oracle.Counter:
		eased := oracle.Eases(r, arrivals, at, max(0, min(load, r.Most())-1))
		return time.Duration(eased - at)
	case oracle.Pace:
		var longest time.Duration
		for _, a := range arrivals {
			longest = max(longest, r.Holds(a.Cost)-time.Duration(at-a.At))
		}
		return longest
	case oracle.Bucket:
		over := max(load-r.Most()+1, 1)
		if r.Limit == 0 {
			return 0
		}
		return r.Window / time.Duration(r.Limit) * time.Duration(over)
	}
	over := max(load-r.Most()+1, 1)
	for _, a := range arrivals {
		if at-a.At >= int64(r.Window) {
			continue
		}
		if over -= weight(r, a); over <= 0 {
			return time.Duration(a.At + int64(r.Window) - at)
		}
	}
	return 0
}

// weight is what an arrival is to a rule.
func weight(r oracle.Rule, a oracle.Spend) int64 {
	if r.Unit != "" {
		return a.Units[r.Unit]
	}
	return a.Cost
}

// seconds rounds up: a caller told less than the truth would come too early.
func seconds(d time.Duration) int64 { return max(1, int64((d+time.Second-1)/time.Second)) }

// answer writes the headers in the form of the IETF's draft 11 and the body.
func (c *call) answer(w http.ResponseWriter) {
	var policies, states []string
	for _, v := range c.verdicts {
		policies = append(policies, policyItem(v.rule))
		states = append(states, stateItem(v))
	}
	if len(policies) > 0 {
		w.Header().Set("RateLimit-Policy", strings.Join(policies, ", "))
		w.Header().Set("RateLimit", strings.Join(states, ", "))
	}
	if len(c.broken) == 0 {
		fmt.Fprintln(w, "ok")
		return
	}
	var longest time.Duration
	var names []string
	for _, v := range c.broken {
		longest = max(longest, v.wait)
		if name := v.rule.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	w.Header().Set("Retry-After", strconv.FormatInt(seconds(longest), 10))
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(http.StatusTooManyRequests)
	json.NewEncoder(w).Encode(map[string]any{
		"type":              "https://iana.org/assignments/http-problem-types#quota-exceeded",
		"title":             "Too many calls for the contract",
		"status":            http.StatusTooManyRequests,
		"violated-policies": names,
	})
}

func policyItem(r oracle.Rule) string {
	switch r.Kind {
	case oracle.Concurrent:
		return fmt.Sprintf(`"%s";q=%d;qu="concurrent-requests"`, r, r.Limit)
	case oracle.Pace:
		return fmt.Sprintf(`"%s";q=%d;w=%d`, r, r.Most(), seconds(r.Holds(1)))
	}
	item := fmt.Sprintf(`"%s";q=%d;w=%d`, r, r.Most(), seconds(r.Window))
	if r.Unit != "" {
		item += fmt.Sprintf(`;qu="%s"`, r.Unit)
	}
	return item
}

func stateItem(v verdict) string {
	item := fmt.Sprintf(`"%s";r=%d`, v.rule, max(0, v.rule.Most()-v.load))
	if v.wait > 0 {
		item += fmt.Sprintf(";t=%d", seconds(v.wait))
	}
	return item
}
