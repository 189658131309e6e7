package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"

	"ration/cmd/internal/cli"
	"ration/coordinator"
	"ration/lease"
)

const defaultListen = "127.0.0.1:4222"

type serveCommand struct {
	Policy string `help:"Policy file. Without it ./ration.yaml, or the built-in demo policy if there is none." placeholder:"FILE"`
	Nats   string `help:"NATS system to join, instead of bringing a server along." env:"NATS_URL" placeholder:"URL"`
	Listen string `help:"Where the NATS server that comes along listens. Without it 127.0.0.1:4222." placeholder:"ADDR"`
	HTTP   string `name:"http" help:"Where /healthz, /readyz and /metrics are. Without it 127.0.0.1:8422 or the next free port." placeholder:"ADDR"`
	Name   string `help:"What people call this coordinator. Without it the machine's name." placeholder:"NAME"`
	keeping
	cli.Connection
	cli.Logging
	joins string // the flag that names a NATS system
}

// Help is the part of the help below the flags' summary.
func (*serveCommand) Help() string {
	return `Leads under a policy and grants leases. Start one for each cell: it refuses to start where somebody leads its cell already. With --redis any number stand by for each other, and with --partitions they share the tenants. With NATS_URL or NATS_CONTEXT set it joins that NATS system, as with --nats, unless --listen is given. The policy in force outlives coordinators with the state: a file counts when it changes, or with SIGHUP, and not when a coordinator starts. SIGTERM or SIGINT drains and exits with 0; a second signal ends it at once.

Example:

  coordinator serve --policy ration.yaml --nats nats://nats:4222

` + cli.Codes
}

func (c *serveCommand) run(ctx context.Context, in *cli.Invocation, s cli.Streams) error {
	voice := c.Voice(name, s)
	if err := c.settle(in, s); err != nil {
		return err
	}
	config, err := c.Config("coordinator "+c.Name, voice.Log)
	if err != nil {
		return err
	}
	policy, origin, err := choosePolicy(c.Policy)
	if err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	soft, hard, restore := cli.Catch(ctx, syscall.SIGHUP)
	defer restore()
	cli.DieOn(hard)

	link, err := c.connect(soft, config)
	if err != nil {
		return cli.Stopped(soft, err, "NATS answered")
	}
	defer link.close()
	site := c.site(policy, link)
	stopNoting := context.AfterFunc(soft, func() { site.stopping.Store(true) })
	defer stopNoting()
	web, err := listenHTTP(c.HTTP, site)
	if err != nil {
		return err
	}
	defer web.close()
	web.start(voice)

	state, err := c.open(soft, c.Cell, voice)
	if err != nil {
		return cli.Stopped(soft, err, "Redis answered")
	}
	defer state.close()
	cell, err := newCell(c, site, state, link, voice, newcomerWait)
	if err != nil {
		return err
	}
	defer cell.close()
	where := fmt.Sprintf("%s, HTTP at http://%s; %s", link.place(in), web.addr, state.place)
	if site.standsBy && !link.joined {
		voice.Log.Warn("NATS comes along with this coordinator and ends with it, so nobody can take over; give all coordinators one NATS system with --nats")
	}
	if site.standsBy {
		voice.Log.Info(fmt.Sprintf("%s stands by for cell %s%s (%s); %s", c.Name, c.Cell, c.divided(", "), origin, where))
	}
	cell.all = func(p coordinator.InForce) string {
		under := origin
		if p.Policy.String() != policy.String() {
			under = fmt.Sprintf("policy revision %d", p.Revision)
		}
		return fmt.Sprintf("%s leads cell %s%s under %s (%s); %s", c.Name, c.Cell, c.divided(", all "), under, cli.Plural(len(p.Policy.Limits), "limit"), where)
	}
	if err = cell.run(soft); err == nil {
		voice.Log.Info(fmt.Sprintf("%v: drained and stopped", context.Cause(soft)))
	}
	return err
}

// site is what this process knows of itself, before it leads anything.
func (c *serveCommand) site(p *lease.Policy, l *link) *site {
	s := &site{name: c.Name, cell: c.Cell, state: c.word(), standsBy: c.Redis != "", policy: p, connected: l.connected,
		file: newPolicyFile(cmp.Or(c.Policy, defaultPolicy), p)}
	if s.standsBy {
		s.ask = func(ctx context.Context, n int, key lease.Key) ([]byte, error) {
			return l.client.PartitionStatus(ctx, n, key)
		}
	}
	return s.divide(c.Partitions)
}

// divided says how many partitions there are, where there are several.
func (c *serveCommand) divided(before string) string {
	if c.Partitions == 1 {
		return ""
	}
	return before + cli.Plural(c.Partitions, "partition")
}

// settle fills in what is not given.
func (c *serveCommand) settle(in *cli.Invocation, s cli.Streams) error {
	for flag, value := range map[string]*string{"nats": &c.Nats, "context": &c.Context} {
		if *value == "" || c.Listen == "" {
			continue
		}
		_, around := in.Variable(flag)
		_, listenAround := in.Variable("listen")
		switch {
		case around && !listenAround: // a flag is stronger than a variable
			*value = ""
		case listenAround && !around:
			c.Listen = ""
		default:
			return cli.Misuse("--%s %s joins a NATS system and --listen %s brings one along; give one of them", flag, *value, c.Listen)
		}
	}
	if c.joins = "nats"; c.Nats == "" {
		c.joins = "context"
	}
	if err := c.Enter(&c.Nats, s); err != nil {
		return err
	}
	if c.Nats != "" {
		if err := cli.CheckNATS(c.Nats); err != nil {
			return err
		}
	}
	if c.Listen == "" {
		c.Listen = defaultListen
	}
	if err := address("listen", c.Listen, defaultListen); err != nil {
		return err
	}
	if c.HTTP != "" {
		if err := address("http", c.HTTP, "127.0.0.1:8422"); err != nil {
			return err
		}
	}
	if c.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("asking for the machine's name: %w; give --name", err)
		}
		c.Name = host
	}
	return nil
}

// address says what is wrong with a flag that says where to listen.
func address(flag, value, example string) error {
	_, port, err := net.SplitHostPort(value)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return cli.Misuse("--%s %q is no address; give one like %s", flag, value, example)
	}
	return nil
}
