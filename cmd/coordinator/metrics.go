package main

import (
	"context"
	"net/http"
	"runtime"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"ration/cmd/internal/cli"
	"ration/lease"
)

// whole is a metric of the process.
func whole(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("ration_"+name, help, labels, nil)
}

// metric is one of a partition, whose number is its last label: a partition that goes
// elsewhere takes its series along, and no other falls.
func metric(name, help string, labels ...string) *prometheus.Desc {
	return whole(name, help, append(labels, "partition")...)
}

var (
	metricBuild     = whole("build_info", "What this coordinator was built from; always 1.", "version", "goversion")
	metricDivided   = whole("partitions", "Partitions of the cell, whoever leads them.")
	metricLeading   = metric("leading", "1 if this coordinator leads.")
	metricEpoch     = metric("epoch", "Number of the leadership.")
	metricPolicy    = metric("policy_revision", "Revision of the policy in force.")
	metricFile      = whole("policy_file_ok", "Whether the policy file of this coordinator is one: while it is missing or wrong, at 0, the policy in force stays.")
	metricConnected = whole("nats_connected", "1 if NATS is there.")
	metricRefused   = metric("requests_refused_total", "Requests refused, by the code of the reason.", "reason")
	metricKeys      = metric("keys", "Limited keys in memory.")

	metricClassWaiting = metric("class_requests_waiting", "Requests of a class that stand in line.", "class")
	metricClassGranted = metric("class_requests_granted_total", "Requests of a class that were granted.", "class")
	metricClassRefused = metric("class_requests_refused_total", "Requests of a class that were refused.", "class")
)

// measured is the metrics that are one number of a status each.
var measured = []struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*lease.Status) int64
}{
	{metric("turns_total", "Turns taken."), prometheus.CounterValue, func(s *lease.Status) int64 { return s.Stats.Turns }},
	{metric("tokens_granted_total", "Tokens granted."), prometheus.CounterValue, func(s *lease.Status) int64 { return s.Stats.Granted }},
	{metric("tokens_spent_total", "Tokens reported as spent."), prometheus.CounterValue, func(s *lease.Status) int64 { return s.Stats.Spent }},
	{metric("tokens_returned_total", "Tokens that came back unspent."), prometheus.CounterValue, func(s *lease.Status) int64 { return s.Stats.Returned }},
	{metric("tokens_expired_total", "Tokens counted as spent because nobody was heard of."), prometheus.CounterValue, func(s *lease.Status) int64 { return s.Stats.Expired }},
	{metric("tokens_overspent_total", "Tokens that calls used beyond what they had asked for: debt of their limits."), prometheus.CounterValue, func(s *lease.Status) int64 { return s.Stats.Overspent }},
	{metric("would_refuse_total", "Tokens and units that were spent and a limit in shadow would have refused."), prometheus.CounterValue, func(s *lease.Status) int64 { return s.Stats.WouldRefuse }},
	{metric("tokens_held", "Tokens that leases hold."), prometheus.GaugeValue, func(s *lease.Status) int64 { return s.Held.Tokens }},
	{metric("slots_granted_total", "Slots granted."), prometheus.CounterValue, func(s *lease.Status) int64 { return s.Stats.SlotsGranted }},
	{metric("slots_freed_total", "Slots that came back with the upstream's answer."), prometheus.CounterValue, func(s *lease.Status) int64 { return s.Stats.SlotsFreed }},
	{metric("slots_cut_total", "Slots that came back without it."), prometheus.CounterValue, func(s *lease.Status) int64 { return s.Stats.SlotsCut }},
	{metric("slots_expired_total", "Slots whose holder was not heard of."), prometheus.CounterValue, func(s *lease.Status) int64 { return s.Stats.SlotsExpired }},
	{metric("slots_held", "Slots that leases hold."), prometheus.GaugeValue, func(s *lease.Status) int64 { return s.Held.Slots }},
	{metric("units_granted_total", "Units besides calls granted, all of them added up."), prometheus.CounterValue, func(s *lease.Status) int64 { return s.Stats.UnitsGranted }},
	{metric("units_spent_total", "Units besides calls reported as spent."), prometheus.CounterValue, func(s *lease.Status) int64 { return s.Stats.UnitsSpent }},
	{metric("units_returned_total", "Units besides calls that came back unspent."), prometheus.CounterValue, func(s *lease.Status) int64 { return s.Stats.UnitsReturned }},
	{metric("units_expired_total", "Units besides calls counted as spent because nobody was heard of."), prometheus.CounterValue, func(s *lease.Status) int64 { return s.Stats.UnitsExpired }},
	{metric("units_overspent_total", "Units besides calls used beyond what was asked for: debt of their limits."), prometheus.CounterValue, func(s *lease.Status) int64 { return s.Stats.UnitsOverspent }},
	{metric("units_held", "Units besides calls that leases hold, all of them added up."), prometheus.GaugeValue, func(s *lease.Status) int64 { return added(s.Held.Units) }},
	{metric("leases_granted_total", "Leases granted."), prometheus.CounterValue, func(s *lease.Status) int64 { return s.Stats.Leases }},
	{metric("leases", "Leases that live."), prometheus.GaugeValue, func(s *lease.Status) int64 { return int64(s.Leases) }},
	{metric("requests_waiting", "Requests that stand in line."), prometheus.GaugeValue, func(s *lease.Status) int64 { return int64(s.Waiting) }},
	{metric("requests_waited_total", "Requests that have stood in line."), prometheus.CounterValue, func(s *lease.Status) int64 { return s.Stats.Waited }},
	{metric("recalls_total", "Recalls sent to holders."), prometheus.CounterValue, func(s *lease.Status) int64 { return s.Stats.Recalls }},
}

func added(units lease.Units) (n int64) {
	for _, u := range units {
		n += u.N
	}
	return n
}

// collector reads a site's state at each scrape. Its labels come from the build,
// from the codes of refusals, from the numbers of partitions and from the policy's
// classes, never from keys.
type collector struct{ site *site }

func metricsHandler(s *site) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(collector{s}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// Describe gives what Collect may send.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{metricBuild, metricDivided, metricLeading, metricEpoch, metricPolicy, metricFile, metricConnected, metricRefused, metricKeys, metricBehind, metricBehindFor, metricUnrecorded,
		metricClassWaiting, metricClassGranted, metricClassRefused} {
		to <- d
	}
	for _, m := range measured {
		to <- m.desc
	}
}

// Collect asks the turn loops. Of a partition that is not led here there is only what the
// process itself knows.
func (c collector) Collect(to chan<- prometheus.Metric) {
	gauge := gauges(to)
	gauge(metricBuild, 1, cli.Version(), runtime.Version())
	gauge(metricConnected, number(c.site.connected()))
	gauge(metricFile, number(c.site.file.problem() == ""))
	gauge(metricDivided, float64(len(c.site.parts)))
	for _, p := range c.site.parts {
		p.collect(to)
	}
}

func gauges(to chan<- prometheus.Metric) func(d *prometheus.Desc, value float64, labels ...string) {
	return func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
}

func (p *part) collect(to chan<- prometheus.Metric) {
	gauge, n := gauges(to), strconv.Itoa(p.n)
	leader := p.leader.Load()
	gauge(metricLeading, number(leader != nil), n)
	if leader == nil {
		return
	}
	gauge(metricEpoch, float64(leader.Epoch().Number), n)
	gauge(metricPolicy, float64(leader.Policy().Revision), n)
	p.collectBehind(leader, to)
	status, err := p.summary(context.Background())
	if err != nil {
		return
	}
	gauge(metricKeys, float64(status.Live), n)
	for _, m := range measured {
		to <- prometheus.MustNewConstMetric(m.desc, m.kind, float64(m.of(&status)), n)
	}
	for _, c := range status.Classes {
		gauge(metricClassWaiting, float64(c.Waiting), c.Name, n)
		to <- prometheus.MustNewConstMetric(metricClassGranted, prometheus.CounterValue, float64(c.Granted), c.Name, n)
		to <- prometheus.MustNewConstMetric(metricClassRefused, prometheus.CounterValue, float64(c.Refused), c.Name, n)
	}
	for reason, count := range status.Stats.Refused {
		to <- prometheus.MustNewConstMetric(metricRefused, prometheus.CounterValue, float64(count), reason, n)
	}
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
