package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"ration/bus"
	"ration/coordinator"
	"ration/lease"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){name: main})
}

// TestScripts runs the command as people do, each script beside a coordinator of
// its own under the policy of startCoordinator. The scripts stand in testdata;
// they have, besides the usual words, those in words below.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Cmds:                words,
		Setup: func(e *testscript.Env) error {
			c, err := startCoordinator()
			if err != nil {
				return err
			}
			e.Values[running{}] = c
			e.Defer(c.stop)
			e.Vars = append(e.Vars, c.environ...)
			return nil
		},
	})
}

const policy = `limits:
  - key: free
    rules: [1000000/1s]
  - key: slow
    rules: [1/10s]
  - key: steady
    rules: [5/1s, 12/3s]
  - key: slots
    rules: [1000/1s, 2 concurrent]
  - key: model
    rules: [100/1s, 1000/1h unit=tokens]
  - key: closed
    rules: [0/1s]
  - key: t/user/{u}
    rules: [5/1h]
  - key: t/route/{r}
    rules: [1000/1h, 2 concurrent]
`

// running is under what a script finds its coordinator.
type running struct{}

// companion is a coordinator with a NATS server in this process.
type companion struct {
	// environ is the environment of who is to find it, however slow the machine.
	environ []string
	leader  *coordinator.Leader
	stop    func() // may be called again
}

// slotTTL is short, so that a lease can be lost within a test.
const slotTTL = 3 * time.Second

func startCoordinator() (*companion, error) {
	p, err := lease.ParsePolicy("policy.yaml", []byte(policy))
	if err != nil {
		return nil, err
	}
	server, err := bus.Embed("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	nc, err := server.Connect(bus.ConnectConfig{})
	if err != nil {
		return nil, err
	}
	config := coordinator.DefaultConfig(p)
	config.Lease.SlotTTL = slotTTL
	c, err := coordinator.New(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan *coordinator.Leader, 1), make(chan error, 1)
	go func() {
		ended <- c.Run(ctx, func(ctx context.Context, l *coordinator.Leader) error {
			return bus.Serve(ctx, nc, bus.ServeConfig{
				Lessor:  l,
				Recalls: l.AllRecalls,
				Ready:   func() { ready <- l },
			})
		})
	}()
	stop := sync.OnceFunc(func() {
		cancel()
		<-ended
		nc.Close()
		server.Close()
	})
	select {
	case l := <-ready:
		return &companion{[]string{"NATS_URL=" + server.URL(), "RATION_CONNECT_WAIT=10s"}, l, stop}, nil
	case err := <-ended:
		ended <- err
		stop()
		return nil, fmt.Errorf("the coordinator ended: %w", err)
	}
}

var words = map[string]func(*testscript.TestScript, bool, []string){
	// exits CODE COMMAND... runs a command that ends with exactly that code, and
	// reads the input set by stdin.
	"exits": func(ts *testscript.TestScript, _ bool, args []string) {
		code := 0
		if err := ts.Exec(args[1], args[2:]...); err != nil {
			var exit interface{ ExitCode() int }
			if !errors.As(err, &exit) {
				ts.Fatalf("running %s: %v", args[1], err)
			}
			code = exit.ExitCode()
		}
		if strconv.Itoa(code) != args[0] {
			ts.Fatalf("%s ended with %d, want %s", strings.Join(args[1:], " "), code, args[0])
		}
	},
	// awaitfile FILE LINES waits until the file has so many lines.
	"awaitfile": func(ts *testscript.TestScript, _ bool, args []string) {
		want, err := strconv.Atoi(args[1])
		ts.Check(err)
		waitFor(ts, args[0], func() bool {
			text, _ := os.ReadFile(ts.MkAbs(args[0]))
			return strings.Count(string(text), "\n") >= want
		})
	},
	// gone FILE waits until no process of those whose numbers the file names lives.
	"gone": func(ts *testscript.TestScript, _ bool, args []string) {
		for _, number := range strings.Fields(ts.ReadFile(args[0])) {
			pid, err := strconv.Atoi(number)
			ts.Check(err)
			waitFor(ts, "the end of process "+number, func() bool { return !lives(pid) })
		}
	},
	// alive FILE says that all processes whose numbers the file names live.
	"alive": func(ts *testscript.TestScript, _ bool, args []string) {
		for _, number := range strings.Fields(ts.ReadFile(args[0])) {
			pid, err := strconv.Atoi(number)
			ts.Check(err)
			if !lives(pid) {
				ts.Fatalf("process %d is gone", pid)
			}
		}
	},
	// signal NAME sends a signal to all commands in the background.
	"signal": func(ts *testscript.TestScript, _ bool, args []string) {
		number := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL}[args[0]]
		for _, cmd := range ts.BackgroundCmds() {
			ts.Check(cmd.Process.Signal(number))
		}
	},
	// stopcoordinator stops the script's coordinator, and its NATS server.
	"stopcoordinator": func(ts *testscript.TestScript, _ bool, _ []string) {
		ts.Value(running{}).(*companion).stop()
	},
	// atrest KEY says that now nothing is held, and of KEY nothing spent.
	"atrest": func(ts *testscript.TestScript, _ bool, args []string) {
		s, err := ts.Value(running{}).(*companion).leader.Status(context.Background(), lease.Key(args[0]))
		ts.Check(err)
		if !s.Held.Zero() {
			ts.Fatalf("%d tokens and %d slots are held", s.Held.Tokens, s.Held.Slots)
		}
		for _, k := range s.Keys {
			for _, w := range k.Windows {
				if w.Free != w.Limit {
					ts.Fatalf("%s: %d of %d are free under %s", k.Key, w.Free, w.Limit, w.Rule)
				}
			}
		}
	},
	// unheld says that now nothing is held.
	"unheld": func(ts *testscript.TestScript, _ bool, _ []string) {
		s, err := ts.Value(running{}).(*companion).leader.Status(context.Background(), "")
		ts.Check(err)
		if !s.Held.Zero() {
			ts.Fatalf("%d tokens and %d slots are held", s.Held.Tokens, s.Held.Slots)
		}
	},
	// upstream NAME sets the variable to the URL of a server that answers /ok with
	// 200, /busy with 429, /moved with a redirect, and cuts the connection
	// elsewhere. It fails the script if a connection is used twice.
	"upstream": func(ts *testscript.TestScript, _ bool, args []string) {
		var requests, connections atomic.Int64
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			switch r.URL.Path {
			case "/ok":
			case "/busy":
				w.WriteHeader(http.StatusTooManyRequests)
			case "/moved":
				http.Redirect(w, r, "/ok", http.StatusFound)
			default:
				panic(http.ErrAbortHandler)
			}
		}))
		s.Config.ConnState = countNew(&connections)
		s.Start()
		ts.Setenv(args[0], s.URL)
		ts.Defer(func() {
			s.Close()
			if r, c := requests.Load(), connections.Load(); r > c {
				ts.Fatalf("%d requests on %d connections: one was used twice", r, c)
			}
		})
	},
	// log FILE LINES KEY checks a log: its number of lines, and what is in each.
	"log": checkLog,
}

// waitFor waits for a condition, and fails only where it never comes about.
func waitFor(ts *testscript.TestScript, what string, reached func() bool) {
	for deadline := time.Now().Add(time.Minute); !reached(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			ts.Fatalf("%s: not within a minute", what)
		}
	}
}
