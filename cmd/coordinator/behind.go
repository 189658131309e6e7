package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ration/cmd/internal/cli"
	"ration/coordinator"
)

// behindState says that grants are not recorded before they are told, as a policy with
// "mirror: available" lets it be, or were not and the mirror has not caught up.
type behindState struct {
	Since time.Time `json:"since"`
	// For is how many nanoseconds ago that was, by the coordinator's clock.
	For int64 `json:"for"`
	// Away says that the mirror does not answer; else it is being caught up.
	Away bool `json:"away"`
	// Leases and Granted are what was granted meanwhile without a record.
	Leases  int64  `json:"leases"`
	Granted amount `json:"granted"`
}

func newBehind(l *coordinator.Leader) *behindState {
	b, behind := l.Behind()
	if !behind {
		return nil
	}
	return &behindState{Since: b.Since.UTC().Round(time.Millisecond), For: int64(time.Since(b.Since)), Away: b.Away, Leases: b.Leases, Granted: newAmount(b.Granted)}
}

// behind tells of partitions whose grants are in no record.
func behind(partitions []partition) []string {
	var all *behindState
	for _, p := range partitions {
		switch b := p.Behind; {
		case b == nil:
		case all == nil:
			sum := *b
			sum.Granted = amount{}
			sum.Granted.add(b.Granted)
			all = &sum
		default:
			if b.Since.Before(all.Since) {
				all.Since, all.For = b.Since, b.For
			}
			all.Away = all.Away || b.Away
			all.Leases += b.Leases
			all.Granted.add(b.Granted)
		}
	}
	if all == nil {
		return nil
	}
	why := "the mirror is away"
	if !all.Away {
		why = "the mirror is being caught up"
	}
	return []string{
		fmt.Sprintf("promise 1 is off since %s, for %s: %s;", all.Since.Format("15:04:05Z"), short(time.Duration(all.For)), why),
		fmt.Sprintf("granted without a record: %v in %s", all.Granted, cli.Plural(all.Leases, "lease")),
	}
}

// The metrics of a mirror that is behind.
var (
	metricBehind     = metric("mirror_behind", "1 while grants are told before they are recorded, or the mirror has not caught up since: promise 1 is off.")
	metricBehindFor  = metric("mirror_behind_seconds", "For how long that has been so; 0 if it is not.")
	metricUnrecorded = metric("mirror_behind_tokens", "Tokens granted since without a record, which are forgotten if the leader ends.")
)

func (p *part) collectBehind(l *coordinator.Leader, to chan<- prometheus.Metric) {
	gauge, n := gauges(to), strconv.Itoa(p.n)
	b, behind := l.Behind()
	lasts := 0.0
	if behind {
		lasts = time.Since(b.Since).Seconds()
	} else {
		b = coordinator.Behind{}
	}
	gauge(metricBehind, number(behind), n)
	gauge(metricBehindFor, lasts, n)
	gauge(metricUnrecorded, float64(b.Granted.Tokens), n)
}
