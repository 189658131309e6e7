package nginx

import (
	"net/http"
	"strconv"
	"sync"
)

// parties answers the requests of one party when all of them are there, so that
// each has a connection of its own.
type parties struct {
	mu   sync.Mutex
	open map[string]*party
}

type party struct {
	missing  int
	complete chan struct{}
}

func (p *parties) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	of, err := strconv.Atoi(r.FormValue("of"))
	if err != nil {
		http.Error(w, "how large is the party?", http.StatusBadRequest)
		return
	}
	select {
	case <-p.join(r.FormValue("party"), of):
		w.WriteHeader(http.StatusNoContent)
	case <-r.Context().Done():
	}
}

// join adds one to a party, and gives what is closed when it is complete. The
// next of that name then begins another.
func (p *parties) join(name string, of int) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		p.open = map[string]*party{}
	}
	if p.open[name] == nil {
		p.open[name] = &party{of, make(chan struct{})}
	}
	joined := p.open[name]
	joined.missing--
	if joined.missing == 0 {
		close(joined.complete)
		delete(p.open, name)
	}
	return joined.complete
}
