package main

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

// startRedis starts a Redis of its own, on a socket in a folder of its own, that
// keeps nothing on disk.
func startRedis() (*redis.Client, func(), error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, nil, fmt.Errorf("peers: %w; install it, for Debian and its kin with integration/install.sh redis-server", err)
	}
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		return nil, nil, err
	}
	socket := filepath.Join(dir, "redis.sock")
	cmd := exec.Command(program, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", dir)
	if err := cmd.Start(); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: socket, PoolSize: 64})
	end := func() {
		_ = client.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}
	for range 200 {
		if err = client.Ping(context.Background()).Err(); err == nil {
			return client, end, nil
		}
		time.Sleep(25 * time.Millisecond)
	}
	end()
	return nil, nil, fmt.Errorf("peers: the Redis that was started does not answer: %w", err)
}
