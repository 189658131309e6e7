// Package server starts what a benchmark is measured against.
package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redis is a redis-server of its own, on a socket in a folder of its own.
type Redis struct {
	Client *redis.Client
	URL    string // as go-redis reads it
	cmd    *exec.Cmd
	dir    string
}

// StartRedis starts one that keeps nothing on disk, unless the further options say
// otherwise.
func StartRedis(options ...string) (*Redis, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("bench: %w; install it, for Debian and its kin with integration/install.sh redis-server", err)
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "redis.sock")
	cmd := exec.Command(program, append([]string{"--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", dir}, options...)...)
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	r := &Redis{
		Client: redis.NewClient(&redis.Options{Network: "unix", Addr: socket, PoolSize: 64}),
		URL:    "unix://" + socket,
		cmd:    cmd,
		dir:    dir,
	}
	for range 200 {
		if err = r.Client.Ping(context.Background()).Err(); err == nil {
			return r, nil
		}
		time.Sleep(25 * time.Millisecond)
	}
	r.End()
	return nil, fmt.Errorf("bench: the Redis that was started does not answer: %w", err)
}

// End ends it and removes what it left.
func (r *Redis) End() {
	_ = r.Client.Close()
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
	_ = os.RemoveAll(r.dir)
}
