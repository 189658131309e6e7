package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"ration/bus"
	"ration/coordinator"
	"ration/lease"
)

// respond is the other process: a NATS server in it, a coordinator that keeps
// its state in memory, and an echo that answers with as many bytes as the last
// token of its subject says. It tells its address, and ends with its standard
// input.
func respond() error {
	policy, err := lease.ParsePolicy("bench", []byte(onePolicy))
	if err != nil {
		return err
	}
	c, err := coordinator.New(coordinator.DefaultConfig(policy))
	if err != nil {
		return err
	}
	server, err := bus.Embed("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer server.Close()
	for _, answer := range []func(*nats.Conn) error{echo} {
		nc, err := bus.Connect(server.URL(), bus.ConnectConfig{})
		if err != nil {
			return err
		}
		defer nc.Close()
		if err := answer(nc); err != nil {
			return err
		}
	}
	nc, err := bus.Connect(server.URL(), bus.ConnectConfig{})
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx, cancel := context.WithCancel(context.Background())
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return c.Run(ctx, func(ctx context.Context, l *coordinator.Leader) error {
			return bus.Serve(ctx, nc, bus.ServeConfig{Lessor: l, Ready: func() { fmt.Println(server.URL()) }})
		})
	})
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	return g.Wait()
}

func echo(nc *nats.Conn) error {
	_, err := nc.Subscribe("echo.*", func(m *nats.Msg) {
		n, err := strconv.Atoi(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
		if err == nil && n <= len(filler) {
			_ = m.Respond(filler[:n])
		}
	})
	if err != nil {
		return err
	}
	return nc.Flush()
}

var filler = []byte(strings.Repeat("x", 4096))
