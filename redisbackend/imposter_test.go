package redisbackend_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// imposter is a server of another make, or of another version, than the one that is
// installed: it answers to commands, and gives its address. What sets a connection up it
// refuses as old servers do.
func imposter(t *testing.T, answer func(command []string) string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	var mu sync.Mutex
	conns := map[net.Conn]bool{}
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns[c] = true
			mu.Unlock()
			all.Go(func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for {
					command, err := readCommand(in)
					if err != nil {
						return
					}
					mu.Lock()
					reply := "-ERR unknown command\r\n"
					if command[0] != "hello" && command[0] != "client" {
						reply = answer(command)
					}
					mu.Unlock()
					if _, err := io.WriteString(c, reply); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range conns {
			c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return l.Addr().String()
}

// readCommand reads an array of texts.
func readCommand(in *bufio.Reader) ([]string, error) {
	n, err := readLength(in, "*")
	if err != nil {
		return nil, err
	}
	command := make([]string, n)
	for i := range command {
		size, err := readLength(in, "$")
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(in, text); err != nil {
			return nil, err
		}
		command[i] = string(text[:size])
	}
	return command, nil
}

func readLength(in *bufio.Reader, kind string) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	text, ok := strings.CutPrefix(strings.TrimSpace(line), kind)
	if !ok {
		return 0, fmt.Errorf("%q does not begin with %s", line, kind)
	}
	return strconv.Atoi(text)
}
