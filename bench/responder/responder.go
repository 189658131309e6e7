// Package responder is the other process of a benchmark: what is measured is on
// both sides of a connection, as it is for users.
package responder

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"ration/bus"
	"ration/coordinator"
	"ration/lease"
	"ration/redisbackend"
)

// word is the first argument of a program that is to respond.
const word = "respond"

// Main is the whole of a program that was started to respond; any other it lets
// go on.
func Main() {
	if len(os.Args) != 3 || os.Args[1] != word {
		return
	}
	if err := respond(os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Config says how to respond.
type Config struct {
	Policy string
	// Redis is the URL of the mirror; without one the state is kept in memory.
	Redis string
}

// coordinator makes the one that responds; end closes its connections.
func (c Config) coordinator() (coord *coordinator.Coordinator, end func(), err error) {
	policy, err := lease.ParsePolicy("bench", []byte(c.Policy))
	if err != nil {
		return nil, nil, err
	}
	config := coordinator.DefaultConfig(policy)
	end = func() {}
	if c.Redis != "" {
		redis, err := redisbackend.Open(c.Redis, redisbackend.DefaultConfig())
		if err != nil {
			return nil, nil, err
		}
		end = func() { _ = redis.Close() }
		mirror := redis.Mirror(bus.DefaultCell, 0)
		config.Mirror, config.Elector = mirror, mirror
	}
	coord, err = coordinator.New(config)
	return coord, end, err
}

// respond is the other process: a NATS server in it, a coordinator, and an echo that
// answers with as many bytes as the last token of its subject says. It tells its
// address, and ends with its standard input.
func respond(text string) error {
	var config Config
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		return err
	}
	c, closeMirror, err := config.coordinator()
	if err != nil {
		return err
	}
	defer closeMirror()
	server, err := bus.Embed("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer server.Close()
	other, err := bus.Connect(server.URL(), bus.ConnectConfig{})
	if err != nil {
		return err
	}
	defer other.Close()
	if err := echo(other); err != nil {
		return err
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

// Start starts this program once more, to respond, and gives the address of its NATS
// server. The program calls Main first of all.
func Start(config Config) (url string, end func(), err error) {
	text, err := json.Marshal(config)
	if err != nil {
		return "", nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(self, word, string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	end = func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		end()
		return "", nil, fmt.Errorf("bench: the other process told no address: %w", err)
	}
	return strings.TrimSpace(line), end, nil
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
