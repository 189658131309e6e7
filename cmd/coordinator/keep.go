package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

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
	Partitions    int           `help:"Into how many partitions the cell is divided, from 1 to 64. All its coordinators are given the same." default:"1" placeholder:"N" group:"State"`
}

// maxPartitions is how many partitions a cell may have. Each coordinator asks for each of
// them a hundred times a second who leads it.
const maxPartitions = 64

func (k *keeping) check() error {
	switch {
	case k.Redis != "" && k.State != "":
		return cli.Misuse("--redis %s and --state %s both keep the state; give one of them", k.Redis, k.State)
	case k.SeatTTL < 400*time.Millisecond || k.SeatTTL > time.Minute:
		return cli.Misuse("--seat-ttl %v is not from 400ms to 1m", k.SeatTTL)
	case k.RedisLag < 0:
		return cli.Misuse("--redis-lag %v is negative; give 0 for a Redis that forgets nothing", k.RedisLag)
	case k.Partitions < 1 || k.Partitions > maxPartitions:
		return cli.Misuse("--partitions %d is not from 1 to %d", k.Partitions, maxPartitions)
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
	place string // for people
	// config puts that of a partition into what its coordinator goes by.
	config func(c *coordinator.Config, n int)
	close  func()
}

// open opens what the flags name, and waits until it answers, for as long as ctx allows.
func (k *keeping) open(ctx context.Context, cell string, voice *cli.Voice) (*kept, error) {
	if k.State != "" {
		return k.openDisk(ctx)
	}
	if k.Redis == "" {
		return &kept{place: "state is in memory, so a restart forgets what was spent", config: func(*coordinator.Config, int) {}, close: func() {}}, nil
	}
	config := redisbackend.DefaultConfig()
	config.Replicas, config.Log = k.RedisReplicas, voice.Log
	if k.Partitions > 1 { // each leads, renews and is looked at by itself
		config.Connections = max(10*runtime.GOMAXPROCS(0), 4*k.Partitions)
	}
	server, err := redisbackend.Open(k.Redis, config)
	if err != nil {
		return nil, cli.Misuse("--redis: %w", err)
	}
	if err := trust(ctx, server, cell, voice); err != nil {
		server.Close()
		return nil, err
	}
	return &kept{
		place: "state is mirrored to Redis at " + server.String(),
		config: func(c *coordinator.Config, n int) {
			mirror := server.Mirror(cell, n)
			c.Mirror, c.Elector = mirror, mirror
		},
		close: func() { server.Close() },
	}, nil
}

// openDisk opens the directory for the first partition, and for each further one a folder
// in it, once it is known that the directory is of as many.
func (k *keeping) openDisk(ctx context.Context) (*kept, error) {
	var mirrors []*diskbackend.Mirror
	closeAll := func() {
		for _, m := range mirrors {
			m.Close()
		}
	}
	for n := range k.Partitions {
		dir := k.State
		if n > 0 {
			dir = filepath.Join(k.State, fmt.Sprintf("partition-%d", n))
		}
		mirror, err := diskbackend.Open(dir)
		if err != nil {
			closeAll()
			return nil, err
		}
		mirrors = append(mirrors, mirror)
		seat, err := mirror.Look(ctx)
		if err == nil && seat.Epoch != (lease.Epoch{}) && seat.Partitions != k.Partitions {
			err = fmt.Errorf("%w: %s is of a cell of %d, this coordinator is for %d; start it with --partitions %d, or give it another --state",
				lease.ErrPartitions, dir, seat.Partitions, k.Partitions, seat.Partitions)
		}
		if err != nil {
			closeAll()
			return nil, err
		}
	}
	return &kept{
		place:  "state is kept in " + k.State,
		config: func(c *coordinator.Config, n int) { c.Mirror, c.Elector = mirrors[n], mirrors[n] },
		close:  closeAll,
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
