package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ration/bus"
	"ration/cmd/internal/cli"
	"ration/lease"
)

// link is the way to NATS: to a server elsewhere, or to one in this process.
type link struct {
	where     string
	joined    bool   // the server is elsewhere,
	joins     string // as this flag says
	connected func() bool
	client    *bus.Client
	serve     func(context.Context, bus.ServeConfig) error
	admin     func(bus.AdminConfig) *bus.Admin
	listen    func(bus.EarsConfig) (*bus.Ears, error)
	close     func()
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

// connect joins a NATS system, or brings a server along.
func (c *serveCommand) connect(ctx context.Context, config bus.ConnectConfig) (*link, error) {
	if c.Nats != "" {
		return c.join(ctx, config)
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
	l := newLink(nc, c.Cell, server.URL())
	l.close = func() {
		nc.Close()
		server.Close()
	}
	return l, nil
}

// join joins a NATS system, in which nobody leads the cell unless they share a Redis.
func (c *serveCommand) join(ctx context.Context, config bus.ConnectConfig) (*link, error) {
	nc, err := bus.ConnectContext(ctx, c.Nats, config)
	if err != nil {
		return nil, unreachable(err, c.Redis != "")
	}
	l := newLink(nc, c.Cell, bus.Redacted(nc.ConnectedUrl()))
	l.joined, l.joins = true, c.joins
	if c.Redis == "" { // else it stands by
		if err := alone(ctx, l.client, l.connected, c.Cell, l.where, config.Wait); err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

func newLink(nc *bus.Conn, cell, where string) *link {
	return &link{
		where:     where,
		connected: nc.IsConnected,
		client:    bus.NewClient(nc, bus.ClientConfig{Cell: cell}),
		serve:     func(ctx context.Context, serve bus.ServeConfig) error { return bus.Serve(ctx, nc, serve) },
		admin:     func(admin bus.AdminConfig) *bus.Admin { return bus.NewAdmin(nc, admin) },
		listen:    func(ears bus.EarsConfig) (*bus.Ears, error) { return bus.Listen(nc, ears) },
		close:     nc.Close,
	}
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
