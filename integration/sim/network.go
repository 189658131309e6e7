package sim

import "time"

// network carries messages between hosts. There are two NATS nodes: each host is on one
// of them, and a route between the two can be lost.
type network struct {
	world *World
	cut   map[*host]time.Duration // from all but the store, until then
	away  map[*host]time.Duration // from the store
	split time.Duration           // until then nothing passes from one node to the other
}

// send carries a message to a host and lets it take it up there. It may be lost,
// doubled, late, or overtaken.
func (n *network) send(from, to *host, take func()) {
	w := n.world
	if n.severed(from) || n.severed(to) || !n.routed(from, to) {
		w.count("partition")
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

// loseRoute lets the nodes not hear each other for d.
func (n *network) loseRoute(d time.Duration) { n.split = max(n.split, n.world.now+d) }

func (n *network) parted(h *host) bool { return !n.world.calm && n.world.now < n.away[h] }

func (n *network) severed(h *host) bool { return !n.world.calm && n.world.now < n.cut[h] }

// routed says that two hosts are on one node, or their nodes hear each other.
func (n *network) routed(a, b *host) bool {
	return a.node == b.node || n.world.calm || n.world.now >= n.split
}
