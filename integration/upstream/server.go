package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"ration/integration/oracle"
)

// Server is the strict upstream, an http.Handler that is safe for concurrent
// use. It keeps every arrival as long as it lives.
type Server struct {
	delay time.Duration
	base  time.Time

	mu        sync.Mutex
	contracts []*tally
	arrivals  []oracle.Spend // Key is the path
	inFlight  int64
	most      int64 // in flight
	refused   int64
}

// tally is a contract with what has arrived under it.
type tally struct {
	Contract
	arrivals   []oracle.Spend
	at         []int // where each of arrivals stands in Server.arrivals
	violations []Violation
}

// New gives a server that holds its callers to the contracts and answers after
// delay, or after what a call's own ?delay=20ms says.
func New(contracts []Contract, delay time.Duration) *Server {
	s := &Server{delay: delay, base: time.Now()}
	for _, c := range contracts {
		s.contracts = append(s.contracts, &tally{Contract: c})
	}
	return s
}

// ServeHTTP counts the call and answers it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/report":
		s.writeReport(w)
		return
	case "/arrivals":
		s.writeArrivals(w)
		return
	}
	delay := s.delay
	if text := r.URL.Query().Get("delay"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			http.Error(w, fmt.Sprintf("delay %q is no duration such as 20ms", text), http.StatusBadRequest)
			return
		}
		delay = d
	}
	units, err := units(r.URL.Query()["unit"])
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	call := s.arrive(r.URL.Path, units)
	defer s.leave(call)
	if len(call.broken) == 0 && delay > 0 {
		time.Sleep(delay) // for a caller that has left, too
	}
	call.answer(w)
}

// call is one arrival, from its arrival to its answer.
type call struct {
	path     string
	index    int // in Server.arrivals
	verdicts []verdict
	broken   []verdict // those that the arrival broke
}

// verdict is what a rule weighs with an arrival counted.
type verdict struct {
	rule oracle.Rule
	load int64
	wait time.Duration // until less is in the way; 0 if nothing tells
}

// arrive stamps the arrival and counts it under every contract of its path. It
// reads the clock under the lock, so that the list is in order of time.
func (s *Server) arrive(path string, units map[string]int64) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := oracle.Spend{Key: path, At: s.now(), Cost: 1, Units: units}
	c := &call{path: path, index: len(s.arrivals)}
	s.arrivals = append(s.arrivals, a)
	s.inFlight++
	s.most = max(s.most, s.inFlight)
	for _, t := range s.contracts {
		if !t.binds(path) {
			continue
		}
		t.arrivals = append(t.arrivals, a)
		t.at = append(t.at, c.index)
		for _, r := range t.Rules {
			if r.Unit != "" && units[r.Unit] == 0 {
				continue // it is nothing to this rule
			}
			v := verdict{rule: r, load: oracle.LoadAt(r, t.arrivals, a.At)}
			v.wait = wait(r, t.arrivals, a.At, v.load)
			c.verdicts = append(c.verdicts, v)
			if v.load > r.Most() {
				c.broken = append(c.broken, v)
				t.violations = append(t.violations, Violation{path, r.String(), a.At, v.load, r.Most()})
			}
		}
	}
	if len(c.broken) > 0 {
		s.refused++
	}
	return c
}

// leave ends the call. The server sends a short answer only after its handler
// has returned, so a caller never sees the answer of a call that still counts.
func (s *Server) leave(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
	done := s.now()
	s.arrivals[c.index].Done = done
	for _, t := range s.contracts {
		if i, ok := t.find(c.index); ok {
			t.arrivals[i].Done = done
		}
	}
}

// units reads what a call says it costs besides, as NAME=N each. A server that limits
// the tokens of a model counts them itself; this one has no model.
func units(texts []string) (map[string]int64, error) {
	var units map[string]int64
	for _, text := range texts {
		name, amount, _ := strings.Cut(text, "=")
		n, err := strconv.ParseInt(amount, 10, 64)
		if name == "" || err != nil || n < 1 {
			return nil, fmt.Errorf("unit %q is not NAME=N, such as unit=tokens=1200", text)
		}
		if units == nil {
			units = map[string]int64{}
		}
		units[name] += n
	}
	return units, nil
}

// now is Unix nanoseconds of a clock that does not step while the server lives.
func (s *Server) now() int64 { return s.base.Add(time.Since(s.base)).UnixNano() }

func (s *Server) writeArrivals(w http.ResponseWriter) {
	s.mu.Lock()
	arrivals := append([]oracle.Spend(nil), s.arrivals...)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/jsonl")
	out := json.NewEncoder(w)
	for _, a := range arrivals {
		line := struct {
			Key   string           `json:"key"`
			Units map[string]int64 `json:"units,omitempty"`
			Sent  int64            `json:"sent,string"`
			Done  int64            `json:"done,string,omitempty"`
		}{a.Key, a.Units, a.At, a.Done}
		if out.Encode(line) != nil {
			return // the caller has gone
		}
	}
}
