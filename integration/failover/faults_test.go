package failover

import (
	"cmp"
	"fmt"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"ration/integration/harness"
	"ration/integration/oracle"
)

const seatTTL = 2 * time.Second

// fault lets something fail, and lets it be well again. It gives when it failed.
type fault struct {
	name string
	do   func(w *world) time.Time
	// most is for how long nothing may be granted, reported and judged only in the full
	// form; 0 where that is not promised.
	most  time.Duration
	rest  time.Duration // what is in doubt longer than usual
	short bool          // it is played in the short form too
}

var faults = []fault{
	{name: "kill -9 of the leader", short: true, most: 300 * time.Millisecond, do: func(w *world) time.Time {
		m := w.leader()
		at := time.Now()
		w.kill(m)
		w.served(at.Add(time.Millisecond))
		w.start(m)
		return at
	}},
	{name: "SIGTERM of the leader", most: 50 * time.Millisecond, do: func(w *world) time.Time {
		m := w.leader()
		at := time.Now()
		w.signal(m.process.Process, syscall.SIGTERM)
		require.Zero(w.t, w.h.Wait(m.process.Process))
		w.served(time.Now())
		w.start(m)
		return at
	}},
	{name: "SIGSTOP of the leader, past a takeover", most: seatTTL + 200*time.Millisecond, do: func(w *world) time.Time {
		m := w.leader()
		before := m.deposed()
		at := time.Now()
		w.signal(m.process.Process, syscall.SIGSTOP)
		w.takeover(m)
		w.served(time.Now())
		wait(w, 5*time.Second)
		w.signal(m.process.Process, syscall.SIGCONT)
		w.h.Until("the woken leader's writes to be refused", func() error {
			if m.deposed() == before {
				return fmt.Errorf("%s has not noticed", m.name)
			}
			return nil
		})
		return at
	}},
	{name: "the leader cut off from Redis", do: func(w *world) time.Time { m := w.leader(); return w.cutOff(m, m.redis) }},
	{name: "the leader cut off from NATS", do: func(w *world) time.Time { m := w.leader(); return w.cutOff(m, m.nats) }},
	{name: "Redis killed, and started empty", short: true, do: func(w *world) time.Time {
		at := time.Now()
		w.redis.Kill()
		w.redis.Start()
		w.served(time.Now())
		return at
	}},
	{name: "Redis killed and started empty, and the leader killed", rest: 12 * time.Second, do: func(w *world) time.Time {
		m := w.leader()
		at := time.Now()
		w.redis.Kill()
		w.kill(m)
		w.redis.Start()
		w.served(time.Now())
		w.start(m)
		return at
	}},
	{name: "Redis in a black hole", do: func(w *world) time.Time {
		at := time.Now()
		for _, m := range w.members {
			m.redis.Swallow()
		}
		wait(w, 1500*time.Millisecond)
		for _, m := range w.members {
			m.redis.Mend()
		}
		w.served(time.Now())
		return at
	}},
	{name: "kill -9 of a worker", do: func(w *world) time.Time {
		k := w.startWorker()
		w.hasSpent(k)
		at := time.Now()
		require.NoError(w.t, k.process.Kill())
		w.served(at)
		return at
	}},
	{name: "SIGSTOP of a worker, past its leases", do: func(w *world) time.Time {
		k := w.startWorker()
		w.hasSpent(k)
		at := time.Now()
		w.signal(k.process, syscall.SIGSTOP)
		wait(w, 12*time.Second)
		w.signal(k.process, syscall.SIGCONT)
		w.served(time.Now())
		w.h.Stop(k.process)
		return at
	}},
}

// wait lets time pass in which something is as it is.
func wait(w *world, d time.Duration) {
	at := time.Now()
	w.h.Until("time to pass", func() error {
		if time.Since(at) < d {
			return fmt.Errorf("%v have passed", time.Since(at))
		}
		return nil
	})
}

// cutOff cuts one of a leader's ways until another has led for a while, and gives when it
// began.
func (w *world) cutOff(m *member, way *harness.Wire) time.Time {
	w.t.Helper()
	at := time.Now()
	way.Cut()
	w.takeover(m)
	w.served(time.Now())
	way.Mend()
	return at
}

// takeover waits until somebody leads who is not old.
func (w *world) takeover(old *member) {
	w.t.Helper()
	w.h.Until("a takeover", func() error {
		if w.leader() == old {
			return fmt.Errorf("%s has the seat", old.name)
		}
		return nil
	})
}

func (w *world) hasSpent(k *worker) {
	w.t.Helper()
	w.h.Until("spends of a worker", func() error {
		spends, err := oracle.ReadFiles(k.log)
		if len(spends) == 0 {
			return cmp.Or(err, fmt.Errorf("there are none"))
		}
		return nil
	})
}
