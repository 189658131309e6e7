package compose

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/integration/upstream"
)

const (
	// patience is for one command, and for what is waited for.
	patience = 3 * time.Minute
	// building may compile everything, on a machine that has other work.
	building = 20 * time.Minute
	// rise is how many calls more show that grants go on: the policy lets nobody hold
	// as many.
	rise = 150
)

// engine says whether there is a Docker engine. One that is slow to answer is one.
func engine(t *testing.T) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := exec.CommandContext(ctx, "docker", "info").Run()
	require.NoError(t, ctx.Err(), "the Docker engine does not answer")
	return err == nil
}

// fleet is the project of docker-compose.yml, under a name of its own.
type fleet struct {
	t       *testing.T
	project string
	command []string // the tool, with what every call of it begins with
	env     []string
	root    string
}

// up builds and starts the fleet as a user does, with a file of variables if one is
// named, and sees to it that nothing of it is left after the test.
func up(t *testing.T, envFile string) *fleet {
	t.Helper()
	f := &fleet{t: t, project: fmt.Sprintf("rationtest%d", os.Getpid()), command: []string{"docker-compose"}}
	f.root = strings.TrimSpace(f.output(patience, "go", "list", "-m", "-f", "{{.Dir}}"))
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "COMPOSE_") && !strings.HasPrefix(name, "FLEET_") && !strings.HasPrefix(name, "PORT_") {
			f.env = append(f.env, v)
		}
	}
	// Its ports and its addresses are not those of a fleet that a user may have up.
	f.env = append(f.env, "PORT_A=", "PORT_B=", "PORT_NATS=", "PORT_UPSTREAM=",
		fmt.Sprintf("FLEET_SUBNET=10.213.%d", 100+os.Getpid()%150))
	if exec.CommandContext(t.Context(), "docker", "compose", "version").Run() == nil {
		f.command = []string{"docker", "compose"}
	}
	if envFile != "" {
		f.command = append(f.command, "--env-file", envFile)
	}
	f.command = append(f.command, "-p", f.project)
	t.Cleanup(f.down)
	f.run(building, append(f.command, "up", "-d", "--build")...)
	return f
}

// down removes the fleet, and shows what it wrote if the test failed. An engine may
// take a while to see that nothing is on a network any more; old ones may never see it,
// and keep the empty network until they are started again.
func (f *fleet) down() {
	if f.t.Failed() {
		out, err := f.clean("logs", "--no-color", "--tail", "60")
		f.t.Logf("%v\n%s", err, out)
	}
	var out []byte
	var err error
	for range 5 {
		if out, err = f.clean("down", "-v", "--remove-orphans", "-t", "5"); err == nil {
			return
		}
		time.Sleep(3 * time.Second)
	}
	if bytes.Contains(out, []byte("has active endpoints")) {
		f.t.Logf("the engine keeps an empty network: %v\n%s", err, out)
		return
	}
	f.t.Errorf("the fleet is not removed: %v\n%s", err, out)
}

// clean runs the tool when the test is over.
func (f *fleet) clean(args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return f.exec(ctx, append(f.command, args...)).CombinedOutput()
}

func (f *fleet) exec(ctx context.Context, words []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir, cmd.Env = f.root, f.env
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// try runs a command and gives what it wrote to its standard output.
func (f *fleet) try(most time.Duration, words ...string) (string, error) {
	ctx, cancel := context.WithTimeout(f.t.Context(), most)
	defer cancel()
	cmd := f.exec(ctx, words)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s: %w\n%s", strings.Join(words, " "), err, stderr.String())
	}
	return stdout.String(), nil
}

func (f *fleet) output(most time.Duration, words ...string) string {
	f.t.Helper()
	out, err := f.try(most, words...)
	require.NoError(f.t, err)
	return strings.TrimSpace(out)
}

func (f *fleet) run(most time.Duration, words ...string) {
	f.t.Helper()
	f.output(most, words...)
}

func (f *fleet) docker(args ...string) {
	f.t.Helper()
	f.run(patience, append([]string{"docker"}, args...)...)
}

func (f *fleet) compose(args ...string) string {
	f.t.Helper()
	return f.output(patience, append(f.command, args...)...)
}

// container gives the id of a service's only container, or of its first.
func (f *fleet) container(service string) string {
	f.t.Helper()
	id, _, _ := strings.Cut(f.output(patience, "docker", "ps", "-aq",
		"--filter", "label=com.docker.compose.project="+f.project,
		"--filter", "label=com.docker.compose.service="+service,
		"--filter", "label=com.docker.compose.container-number=1"), "\n")
	require.NotEmpty(f.t, id, "container of %s", service)
	return id
}

func (f *fleet) network() string { return f.project + "_fleet" }

// until waits until done gives no error.
func (f *fleet) until(what string, done func() error) {
	f.t.Helper()
	var err error
	for began := time.Now(); time.Since(began) < patience; time.Sleep(300 * time.Millisecond) {
		if err = done(); err == nil {
			return
		}
	}
	require.NoError(f.t, err, "waited %v for %s", patience, what)
}

// leads asks the fleet, from within a worker's container, who leads it.
func (f *fleet) leads() (string, error) {
	out, err := f.try(30*time.Second, "docker", "exec", f.container("worker"), "coordinator", "status", "--json")
	if err != nil {
		return "", err
	}
	var status struct {
		Partitions []struct{ Leader string }
	}
	if err := json.Unmarshal([]byte(out), &status); err != nil {
		return "", err
	}
	if len(status.Partitions) != 1 {
		return "", fmt.Errorf("status tells of %d partitions, not of 1", len(status.Partitions))
	}
	return status.Partitions[0].Leader, nil
}

func (f *fleet) leader() string {
	f.t.Helper()
	var leader string
	f.until("a leader", func() (err error) {
		leader, err = f.leads()
		return err
	})
	return leader
}

// takeover waits until somebody leads who is not old.
func (f *fleet) takeover(old string) {
	f.t.Helper()
	f.until("a takeover from "+old, func() error {
		leader, err := f.leads()
		if err == nil && leader == old {
			err = fmt.Errorf("%s leads", old)
		}
		return err
	})
}

// stands waits until a coordinator is well, as the engine sees it: it leads, or stands by.
func (f *fleet) stands(name string) {
	f.t.Helper()
	f.until(name+" to be healthy", func() error {
		health := f.output(patience, "docker", "inspect", "--format", "{{.State.Status}} {{.State.Health.Status}}", f.container(name))
		if health != "running healthy" {
			return fmt.Errorf("it is %s", health)
		}
		return nil
	})
}

// led requires that both coordinators are well and that one of them leads.
func (f *fleet) led() {
	f.t.Helper()
	names := []string{"coordinator-a", "coordinator-b"}
	for _, name := range names {
		f.stands(name)
	}
	require.Contains(f.t, names, f.leader())
}

// scale changes how many workers there are, and waits until they are.
func (f *fleet) scale(workers int) {
	f.t.Helper()
	f.compose("up", "-d", "--no-recreate", "--scale", fmt.Sprintf("worker=%d", workers))
	f.until("the workers", func() error {
		running := len(strings.Fields(f.output(patience, "docker", "ps", "-q", "--filter", "status=running",
			"--filter", "label=com.docker.compose.project="+f.project,
			"--filter", "label=com.docker.compose.service=worker")))
		if running != workers {
			return fmt.Errorf("%d of %d run", running, workers)
		}
		return nil
	})
}

// report asks the upstream what it has seen.
func (f *fleet) report() upstream.Report {
	f.t.Helper()
	var r upstream.Report
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	f.until("the upstream's report", func() error {
		resp, err := client.Get("http://" + f.compose("port", "upstream", "8080") + "/report")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return json.NewDecoder(resp.Body).Decode(&r)
	})
	return r
}

// goesOn waits until more calls have been granted than could be held from before.
func (f *fleet) goesOn() {
	f.t.Helper()
	before := f.report().Arrivals
	f.until("grants to go on", func() error {
		if now := f.report().Arrivals; now < before+rise {
			return fmt.Errorf("%d calls, %d before", now, before)
		}
		return nil
	})
}

// kept requires that demand was full, and that no call broke the contract.
func (f *fleet) kept() {
	f.t.Helper()
	r := f.report()
	for _, c := range r.Contracts {
		for _, rule := range c.Rules {
			f.t.Logf("%s: at most %d of %d calls, bound %d times", rule.Rule, rule.Worst, c.Arrivals, rule.Binds)
		}
	}
	require.Zero(f.t, r.Violations(), "%+v", r)
	require.Zero(f.t, r.Refused)
	require.Greater(f.t, r.Arrivals, int64(5*rise))
}
