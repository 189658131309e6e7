package main

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"ration"
)

// patience is how long a request may take, its turn and the call together.
const patience = 5 * time.Second

// search answers requests with what the upstream says.
type search struct {
	limiter  *ration.Limiter
	upstream string
	client   http.Client
}

func newSearch(l *ration.Limiter, upstream string) *search {
	return &search{l, upstream, http.Client{
		// One token is one attempt on the wire. A connection that is used again
		// may break, and then net/http sends a GET a second time by itself.
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// ServeHTTP makes one call for one request.
func (s *search) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	handle, err := s.limiter.Acquire(ctx, 1)
	if err != nil {
		busy(w, err)
		return
	}
	status, body, err := s.call(handle)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.WriteHeader(status)
	w.Write(body)
}

// call spends the token of handle, and ends it as the call ended.
func (s *search) call(handle *ration.Handle) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(handle.Context(), http.MethodGet, s.upstream, nil)
	if err != nil {
		handle.Cancel() // it never left: the token serves the next caller
		return 0, nil, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		handle.Abandon() // it may have left: the upstream may be at work still
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		handle.Abandon()
		return 0, nil, err
	}
	handle.Finish() // the upstream has answered: the slot is free
	return resp.StatusCode, body, nil
}

// busy says that the turn did not come.
func busy(w http.ResponseWriter, err error) {
	var refused *ration.Refused
	if errors.As(err, &refused) && refused.Wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(refused.Wait.Seconds()))))
	}
	http.Error(w, err.Error(), http.StatusServiceUnavailable)
}
