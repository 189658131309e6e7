package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"ration/bus"
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
	return `Leads under a policy and grants leases. Start one for each cell: it refuses to start where somebody leads its cell already. With NATS_URL or NATS_CONTEXT set it joins that NATS system, as with --nats, unless --listen is given. SIGTERM or SIGINT drains and exits with 0; a second signal ends it at once.

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
	soft, hard, restore := cli.Catch(ctx)
	defer restore()
	cli.DieOn(hard)

	link, err := c.connect(soft, config)
	if err != nil {
		return cli.Stopped(soft, err, "NATS answered")
	}
	defer link.close()
	site := &site{name: c.Name, cell: c.Cell, state: c.word(), standsBy: c.Redis != "", policy: policy, connected: link.connected}
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
	coord, stopListening, err := c.coordinator(policy, state, link, voice)
	if err != nil {
		return err
	}
	defer stopListening()
	if c.Redis != "" {
		voice.Say("%s stands by for cell %s (%s); %s, HTTP at http://%s; %s", c.Name, c.Cell, origin, link.place(in), web.addr, state.place)
	}
	err = coord.Run(soft, func(ctx context.Context, l *coordinator.Leader) error {
		defer site.lead(l)()
		return link.serve(ctx, bus.ServeConfig{
			Lessor:  l,
			Epoch:   l.Epoch,
			Cell:    c.Cell,
			Name:    c.Name,
			Version: cli.Version(),
			Status:  site.document,
			Recalls: l.AllRecalls,
			Log:     voice.Log,
			Ready: func() {
				site.serving.Store(true)
				voice.Say("%s leads cell %s under %s (%s); %s, HTTP at http://%s; %s",
					c.Name, c.Cell, origin, cli.Plural(len(policy.Limits), "limit"), link.place(in), web.addr, state.place)
			},
		})
	})
	if err == nil {
		voice.Say("%v: drained and stopped", context.Cause(soft))
	}
	return err
}

// coordinator makes the coordinator, which listens for others where its state is not its
// own.
func (c *serveCommand) coordinator(p *lease.Policy, state *kept, l *link, voice *cli.Voice) (coord *coordinator.Coordinator, stop func(), err error) {
	config := coordinator.DefaultConfig(p)
	config.Log = voice.Log
	config.Seat.Name, config.Seat.TTL, config.Seat.Lag, config.Seat.Cold = c.Name, c.SeatTTL, c.RedisLag, c.ColdStart
	config.Seat.Early = min(config.Seat.Early, c.SeatTTL)
	state.config(&config)
	if c.Redis == "" {
		coord, err = coordinator.New(config)
		return coord, func() {}, err
	}
	var ears *bus.Ears
	known := func() bus.Known {
		number, mirror, leads := coord.Known()
		return bus.Known{Number: number, Mirror: mirror, Leads: leads}
	}
	config.Hear = func(s lease.Seat) coordinator.Heard { return hear(ears, known, s) }
	if coord, err = coordinator.New(config); err != nil {
		return nil, nil, err
	}
	ears, err = l.listen(bus.EarsConfig{Cell: c.Cell, Name: c.Name, Known: known, Every: config.LookEvery})
	if err != nil {
		return nil, nil, err
	}
	return coord, ears.Close, nil
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

// link is the way to NATS: to a server elsewhere, or to one in this process.
type link struct {
	where     string
	joined    bool   // the server is elsewhere,
	joins     string // as this flag says
	connected func() bool
	serve     func(context.Context, bus.ServeConfig) error
	close     func()
	listen    func(bus.EarsConfig) (*bus.Ears, error)
}

// place says where NATS is, and what made this process join it if it did.
func (l *link) place(in *cli.Invocation) string {
	if !l.joined {
		return "NATS at " + l.where
	}
	chosen, ok := in.Variable(l.joins)
	if !ok {
		chosen = "--" + l.joins
	}
	return fmt.Sprintf("joined NATS at %s, as %s says", l.where, chosen)
}

func (c *serveCommand) connect(ctx context.Context, config bus.ConnectConfig) (*link, error) {
	if c.Nats != "" {
		nc, err := bus.ConnectContext(ctx, c.Nats, config)
		if err != nil {
			return nil, unreachable(err, c.Redis != "")
		}
		where := bus.Redacted(nc.ConnectedUrl())
		if c.Redis == "" { // else it stands by
			client := bus.NewClient(nc, bus.ClientConfig{Cell: c.Cell})
			if err := alone(ctx, client, nc.IsConnected, c.Cell, where, config.Wait); err != nil {
				nc.Close()
				return nil, err
			}
		}
		return &link{
			where:     where,
			joined:    true,
			joins:     c.joins,
			connected: nc.IsConnected,
			serve: func(ctx context.Context, serve bus.ServeConfig) error {
				return bus.Serve(ctx, nc, serve)
			},
			listen: func(ears bus.EarsConfig) (*bus.Ears, error) { return bus.Listen(nc, ears) },
			close:  nc.Close,
		}, nil
	}
	server, err := bus.Embed(c.Listen)
	if err != nil {
		return nil, err
	}
	nc, err := server.Connect(bus.ConnectConfig{Name: config.Name, Wait: config.Wait, Log: config.Log})
	if err != nil {
		server.Close()
		return nil, err
	}
	return &link{
		where:     server.URL(),
		connected: nc.IsConnected,
		serve: func(ctx context.Context, serve bus.ServeConfig) error {
			return bus.Serve(ctx, nc, serve)
		},
		listen: func(ears bus.EarsConfig) (*bus.Ears, error) { return bus.Listen(nc, ears) },
		close: func() {
			nc.Close()
			server.Close()
		},
	}, nil
}

// unreachable words the failure of first contact for who starts a coordinator. One that
// shares a Redis with others needs the NATS that they are on.
func unreachable(err error, shares bool) error {
	if !errors.Is(err, lease.ErrNoCoordinator) {
		return err
	}
	_, text, _ := strings.Cut(err.Error(), lease.ErrNoCoordinator.Error()+": ")
	text, _, _ = strings.Cut(text, ";")
	remedy := "start one there, name another with --nats, or leave --nats out to bring one along"
	if shares {
		remedy = "start one there, name another with --nats, or wait for it longer with --connect-wait"
	}
	return &cli.Exit{Code: cli.NoCoordinator, Err: fmt.Errorf("%s; %s", text, remedy)}
}
