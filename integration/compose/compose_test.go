package compose

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// faults are played one after the other, each on a fleet that is well. Each ends
// with a fleet that is well again.
var faults = []struct {
	name string
	play func(f *fleet)
}{
	{"the leader is killed", func(f *fleet) {
		old := f.leader()
		f.docker("kill", f.container(old))
		f.takeover(old)
		f.goesOn()
		f.docker("start", f.container(old))
		f.stands(old)
	}},
	{"the leader is cut off the network", func(f *fleet) {
		old := f.leader()
		container := f.container(old)
		f.docker("network", "disconnect", f.network(), container)
		f.takeover(old)
		f.goesOn()
		f.docker("network", "connect", f.network(), container)
		f.stands(old)
	}},
	{"the leader is paused past a takeover, and wakes", func(f *fleet) {
		old := f.leader()
		container := f.container(old)
		f.docker("pause", container)
		f.takeover(old)
		f.goesOn()
		f.docker("unpause", container)
		f.stands(old)
		require.NotEqual(f.t, old, f.leader(), "who wakes is a standby")
	}},
	{"the leader is stopped", func(f *fleet) {
		old := f.leader()
		f.compose("stop", old)
		f.takeover(old)
		f.goesOn()
		f.compose("start", old)
		f.stands(old)
	}},
	{"3 workers become 20", func(f *fleet) { f.scale(20) }},
	{"the leader of 20 workers is killed", func(f *fleet) {
		old := f.leader()
		f.docker("kill", f.container(old))
		f.takeover(old)
		f.goesOn()
		f.docker("start", f.container(old))
		f.stands(old)
	}},
	{"20 workers become 3", func(f *fleet) { f.scale(3) }},
}

// wanted skips a test that is not asked for, or for which there is no engine.
func wanted(t *testing.T) {
	t.Helper()
	if os.Getenv("RATION_COMPOSE") != "1" {
		t.Skip("RATION_COMPOSE=1 plays docker-compose.yml on a Docker engine")
	}
	if !engine(t) {
		t.Skip("no Docker engine answers here, so docker-compose.yml is not played")
	}
}

func TestFleetKeepsItsContract(t *testing.T) {
	wanted(t)
	f := up(t, "")
	f.led()
	f.goesOn()
	for _, fault := range faults {
		before := f.report()
		fault.play(f)
		f.goesOn()
		after := f.report()
		t.Logf("%s: %d calls, %d violations", fault.name, after.Arrivals-before.Arrivals, after.Violations()-before.Violations())
	}
	f.led()
	f.kept()
}

// Any one of the servers may go, that of NATS which all began with and the Redis that
// is written to among them.
func TestFleetWithSpareServersKeepsItsContract(t *testing.T) {
	wanted(t)
	f := up(t, "deploy/ha.env")
	f.led()
	f.goesOn()
	for _, server := range []string{"nats", "redis"} {
		f.docker("kill", f.container(server))
		f.goesOn()
		f.docker("start", f.container(server))
		f.goesOn()
		t.Logf("%s is killed: %d violations", server, f.report().Violations())
	}
	f.led()
	f.kept()
}
