package nginx

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pace is a lone loop that calls a location at even times, over one warm
// connection.
type pace struct {
	t    *testing.T
	s    *server
	at   string
	gap  time.Duration
	http *http.Client
	made []call
	err  error
}

func newPace(t *testing.T, s *server, at string, gap time.Duration) *pace {
	t.Helper()
	return &pace{t: t, s: s, at: "/" + at, gap: gap, http: warmed(t, s, at)}
}

// run makes the calls.
func (p *pace) run(calls int) {
	tick := time.NewTicker(p.gap)
	defer tick.Stop()
	for n := range calls {
		<-tick.C
		c := call{id: fmt.Sprintf("%s-%d", p.at[1:], n), worker: "loop", sent: time.Now()}
		if p.err = c.make(context.Background(), p.http, p.s.url+p.at); p.err != nil {
			return
		}
		p.made = append(p.made, c)
	}
}

// judged is what nginx made of them.
func (p *pace) judged() seen {
	p.t.Helper()
	require.NoError(p.t, p.err)
	return p.s.judge(p.at, p.made)
}
