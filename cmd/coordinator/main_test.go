package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){name: main})
}

// TestScripts runs the command as people do. The scripts stand in testdata; they
// have, besides the usual words, those in words below.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Cmds:                words,
	})
}

var words = map[string]func(*testscript.TestScript, bool, []string){
	// freeport NAME... sets each variable to a port that is free now.
	"freeport": func(ts *testscript.TestScript, _ bool, args []string) {
		for _, name := range args {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			ts.Check(err)
			_, port, _ := net.SplitHostPort(l.Addr().String())
			ts.Setenv(name, port)
			defer l.Close()
		}
	},
	// exits CODE COMMAND... runs a command that ends with exactly that code.
	"exits": func(ts *testscript.TestScript, _ bool, args []string) {
		code := 0
		if err := ts.Exec(args[1], args[2:]...); err != nil {
			var exit interface{ ExitCode() int }
			if !asExit(err, &exit) {
				ts.Fatalf("running %s: %v", args[1], err)
			}
			code = exit.ExitCode()
		}
		if want := args[0]; fmt.Sprint(code) != want {
			ts.Fatalf("%s ended with %d, want %s", strings.Join(args[1:], " "), code, want)
		}
	},
	// await URL [TEXT] waits until the page answers 200 and has the text in it.
	"await": func(ts *testscript.TestScript, _ bool, args []string) {
		text := strings.Join(args[1:], " ")
		until(ts, args[0], func() bool {
			resp, err := http.Get(args[0])
			if err != nil {
				return false
			}
			defer resp.Body.Close()
			var b strings.Builder
			_, err = fmt.Fprint(&b, readAll(resp))
			return err == nil && resp.StatusCode == http.StatusOK && strings.Contains(b.String(), text)
		})
	},
	// awaitfile FILE waits until the file exists.
	"awaitfile": func(ts *testscript.TestScript, _ bool, args []string) {
		until(ts, args[0], func() bool {
			_, err := os.Stat(ts.MkAbs(args[0]))
			return err == nil
		})
	},
	// signal NUMBER sends a signal to all commands in the background.
	"signal": func(ts *testscript.TestScript, _ bool, args []string) {
		number := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP}[args[0]]
		for _, cmd := range ts.BackgroundCmds() {
			ts.Check(cmd.Process.Signal(number))
		}
	},
	// noise FILE writes bytes that are no text.
	"noise": func(ts *testscript.TestScript, _ bool, args []string) {
		ts.Check(os.WriteFile(filepath.Clean(ts.MkAbs(args[0])), []byte{0x7f, 'E', 'L', 'F', 0, 0xff, 0xfe}, 0o600))
	},
}

// until waits for a condition, and fails only where it never comes about.
func until(ts *testscript.TestScript, what string, reached func() bool) {
	for deadline := time.Now().Add(time.Minute); !reached(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			ts.Fatalf("%s: not within a minute", what)
		}
	}
}

func readAll(resp *http.Response) string {
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

func asExit(err error, exit *interface{ ExitCode() int }) bool { return errors.As(err, exit) }
