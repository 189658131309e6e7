package main

import (
	"context"
	"errors"
	"time"

	"ration/bus"
	"ration/cmd/internal/cli"
	"ration/coordinator"
	"ration/diskbackend"
	"ration/lease"
	"ration/redisbackend"
)

// keeping is the flags that say where the state is kept, and how a leader is found.
type keeping struct {
	Redis         string        `help:"Redis that mirrors the state, so that another coordinator can take over: redis://HOST:6379, with ?master_name=NAME behind Sentinels, with &addr=HOST:PORT for each further node of a Cluster." placeholder:"URL" group:"State"`
	State         string        `help:"Directory in which a lone coordinator keeps its state, so that a restart forgets nothing." placeholder:"DIR" group:"State"`
	SeatTTL       time.Duration `name:"seat-ttl" help:"How long a leader may show no life before another takes its seat." default:"2s" placeholder:"D" group:"State"`
	RedisLag      time.Duration `help:"How much Redis may forget when it is started again with its data: what could have been granted in it is charged." default:"2s" placeholder:"D" group:"State"`
	RedisReplicas int           `help:"How many replicas have to have a turn before it is answered; -1 for all that are connected." default:"-1" placeholder:"N" group:"State"`
	ColdStart     bool          `help:"Take a Redis without a seat for a new one, though it may have lost what was spent." group:"State"`
}

func (k *keeping) check() error {
	switch {
	case k.Redis != "" && k.State != "":
		return cli.Misuse("--redis %s and --state %s both keep the state; give one of them", k.Redis, k.State)
	case k.SeatTTL < 400*time.Millisecond || k.SeatTTL > time.Minute:
		return cli.Misuse("--seat-ttl %v is not from 400ms to 1m", k.SeatTTL)
	case k.RedisLag < 0:
		return cli.Misuse("--redis-lag %v is negative; give 0 for a Redis that forgets nothing", k.RedisLag)
	case k.RedisReplicas < -1:
		return cli.Misuse("--redis-replicas %d is below -1; -1 is for all that are connected", k.RedisReplicas)
	}
	return nil
}

// word says where the state is kept, for programs.
func (k *keeping) word() string {
	switch {
	case k.Redis != "":
		return "redis"
	case k.State != "":
		return "disk"
	}
	return "memory"
}

// kept is where the state is.
type kept struct {
	place  string // for people
	config func(*coordinator.Config)
	close  func()
}

// open opens what the flags name, and waits until it answers, for as long as ctx allows.
func (k *keeping) open(ctx context.Context, cell string, voice *cli.Voice) (*kept, error) {
	if k.State != "" {
		mirror, err := diskbackend.Open(k.State)
		if err != nil {
			return nil, err
		}
		return &kept{
			place:  "state is kept in " + k.State,
			config: func(c *coordinator.Config) { c.Mirror, c.Elector = mirror, mirror },
			close:  func() { mirror.Close() },
		}, nil
	}
	if k.Redis == "" {
		return &kept{place: "state is in memory, so a restart forgets what was spent", config: func(*coordinator.Config) {}, close: func() {}}, nil
	}
	config := redisbackend.DefaultConfig()
	config.Replicas = k.RedisReplicas
	server, err := redisbackend.Open(k.Redis, config)
	if err != nil {
		return nil, cli.Misuse("--redis: %w", err)
	}
	if err := trust(ctx, server, cell, voice); err != nil {
		server.Close()
		return nil, err
	}
	mirror := server.Mirror(cell, 0)
	return &kept{
		place:  "state is mirrored to Redis at " + server.String(),
		config: func(c *coordinator.Config) { c.Mirror, c.Elector = mirror, mirror },
		close:  func() { server.Close() },
	}, nil
}

// trust asks the server until it answers. One that may drop records, or cannot run the
// scripts, is no mirror.
func trust(ctx context.Context, server *redisbackend.Server, cell string, voice *cli.Voice) error {
	var told time.Time
	for {
		err := server.Check(ctx, cell)
		switch {
		case err == nil || errors.Is(err, redisbackend.ErrEvicts), errors.Is(err, redisbackend.ErrOld):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Since(told) >= 5*time.Second:
			told = time.Now()
			voice.Log.Warn("waiting for Redis", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// hear gives what a coordinator that knows this hears of others.
func hear(ears *bus.Ears, known func() bus.Known, s lease.Seat) coordinator.Heard {
	h := ears.Hear(s.Epoch)
	out := coordinator.Heard{Connected: h.Connected, Silent: h.Silent, Served: h.Served}
	own := known().Mirror
	for _, o := range h.Others {
		out.Number = max(out.Number, o.Number)
		if own != 0 && o.Mirror != 0 && o.Mirror != own {
			out.Rivals = append(out.Rivals, coordinator.Rival{Name: "coordinator " + cli.Printable(o.Name, 60), Mirror: o.Mirror, Leads: o.Leads})
		}
	}
	return out
}
