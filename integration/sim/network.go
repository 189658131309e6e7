package sim

import "time"

// network carries messages between hosts.
type network struct {
	world *World
	cut   map[*host]time.Duration // from all but the store, until then
	away  map[*host]time.Duration // from the store
}

// send carries a message to a host and lets it take it up there. It may be lost,
// doubled, late, or overtaken.
func (n *network) send(from, to *host, take func()) {
	w := n.world
	if n.severed(from) || n.severed(to) {
		w.Faults["partition"]++
		return
	}
	if w.chance(0.02, "drop") {
		return
	}
	n.carry(to, take)
	if w.chance(0.03, "duplicate") {
		n.carry(to, take)
	}
}

func (n *network) carry(to *host, take func()) {
	w := n.world
	d := w.between(200*time.Microsecond, 2*time.Millisecond)
	if w.chance(0.03, "delay") {
		d = w.between(50*time.Millisecond, 3*time.Second)
	}
	if w.chance(0.10, "reorder") {
		d += w.between(0, 20*time.Millisecond)
	}
	life := to.life
	w.after(d, func() {
		if to.life == life {
			to.after(0, take)
		}
	})
}

// partition cuts a host off for d.
func (n *network) partition(h *host, d time.Duration) {
	if n.cut == nil {
		n.cut = map[*host]time.Duration{}
	}
	n.cut[h] = max(n.cut[h], n.world.now+d)
}

// part cuts a host off from the store for d.
func (n *network) part(h *host, d time.Duration) {
	if n.away == nil {
		n.away = map[*host]time.Duration{}
	}
	n.away[h] = max(n.away[h], n.world.now+d)
}

func (n *network) parted(h *host) bool { return !n.world.calm && n.world.now < n.away[h] }

func (n *network) severed(h *host) bool { return !n.world.calm && n.world.now < n.cut[h] }
