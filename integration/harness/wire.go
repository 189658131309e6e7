package harness

import (
	"net"
	"sync"
	"time"
)

// Wire is a way to a server that can be cut, or swallow what is sent over it.
type Wire struct {
	listener net.Listener
	to       string
	done     sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	cut    bool
	silent bool
	deaf   bool
	delay  time.Duration
	moved  *sync.Cond
}

// Wire gives a way to a server, which ends with the test.
func (h *Test) Wire(to string) *Wire {
	h.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		h.t.Fatalf("%v", err)
	}
	w := &Wire{listener: l, to: to, conns: map[net.Conn]struct{}{}}
	w.moved = sync.NewCond(&w.mu)
	w.done.Add(1)
	go w.accept()
	h.t.Cleanup(w.close)
	return w
}

// Addr is where the wire begins.
func (w *Wire) Addr() string { return w.listener.Addr().String() }

// Cut ends all connections, and lets none begin until Mend.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	w.drop()
}

// Swallow lets connections be, and begin, but carries nothing until Mend: what was sent
// meanwhile is carried then.
func (w *Wire) Swallow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent = true
}

// Deafen lets what is sent arrive, and drops what comes back until Mend, with the
// connection that it came on.
func (w *Wire) Deafen() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deaf = true
}

// Delay lets what comes back come so much later until Mend.
func (w *Wire) Delay(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = d
}

// Conns is how many connections there are now.
func (w *Wire) Conns() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.conns) / 2
}

// Mend makes it a good wire again.
func (w *Wire) Mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut, w.silent, w.deaf, w.delay = false, false, false, 0
	w.moved.Broadcast()
}

func (w *Wire) drop() {
	for c := range w.conns {
		c.Close()
	}
}

func (w *Wire) close() {
	w.listener.Close()
	w.mu.Lock()
	w.cut, w.silent, w.delay = true, false, 0
	w.moved.Broadcast()
	w.drop()
	w.mu.Unlock()
	w.done.Wait()
}

func (w *Wire) accept() {
	defer w.done.Done()
	for {
		from, err := w.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.DialTimeout("tcp", w.to, time.Second)
		if err != nil || !w.keep(from, to) {
			from.Close()
			if err == nil {
				to.Close()
			}
			continue
		}
		w.done.Add(2)
		go w.carry(from, to, false)
		go w.carry(to, from, true)
	}
}

// keep notes the ends of a connection, unless the wire is cut.
func (w *Wire) keep(ends ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		return false
	}
	for _, c := range ends {
		w.conns[c] = struct{}{}
	}
	return true
}

// carry carries what is sent, or what comes back.
func (w *Wire) carry(from, to net.Conn, back bool) {
	defer w.done.Done()
	defer func() {
		from.Close()
		to.Close()
		w.mu.Lock()
		delete(w.conns, from)
		w.mu.Unlock()
	}()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		w.mu.Lock()
		for w.silent {
			w.moved.Wait()
		}
		over, delay := w.cut || back && w.deaf, w.delay
		w.mu.Unlock()
		if over {
			return
		}
		if back && delay > 0 && !w.pause(delay) {
			return
		}
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pause lets time pass, and says whether the wire is still there. A cut ends it.
func (w *Wire) pause(d time.Duration) bool {
	until := time.Now().Add(d)
	for {
		w.mu.Lock()
		cut := w.cut
		d = min(time.Until(until), w.delay) // a wire that is mended delays no longer
		w.mu.Unlock()
		if cut || d <= 0 {
			return !cut
		}
		time.Sleep(min(d, every))
	}
}
