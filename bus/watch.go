package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"ration/lease"
)

// NATS tells of a refused publish or subscription, and of a lost connection,
// apart from the request that met it, which would otherwise only time out. A
// watch hears of them for one connection and fails the requests concerned.
type watch struct {
	log *slog.Logger

	mu    sync.Mutex
	waits map[*wait]struct{}
	told  map[string]time.Time // when what was said to operators
	// heard is the last refusal that was heard of, and more is closed at the next one.
	heard error
	more  chan struct{}
	// inbox is why replies cannot arrive, known since connection number
	// inboxAt: after a reconnect the subscription is tried again.
	inbox   error
	inboxAt uint64
}

// wait is somebody who depends on a subject.
type wait struct {
	subject string
	// asks says that it waits for a reply, which a lost connection loses.
	asks bool
	fail func(error)
}

// watches finds the watch of a connection that Connect made, until it closes.
var watches sync.Map // *nats.Conn to *watch

func watchOf(nc *nats.Conn) *watch {
	w, _ := watches.Load(nc)
	found, _ := w.(*watch)
	return found
}

func newWatch(log *slog.Logger) *watch {
	return &watch{log: log, waits: map[*wait]struct{}{}, told: map[string]time.Time{}, more: make(chan struct{})}
}

// add tells fail, at most a few times and from another goroutine, of what
// becomes impossible on w's subject, until the function it gives is called.
func (w *watch) add(nc *nats.Conn, who *wait) (remove func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inbox != nil && who.asks {
		if nc.Stats().Reconnects == w.inboxAt {
			return nil, w.inbox
		}
		w.inbox = nil
	}
	w.waits[who] = struct{}{}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.waits, who)
	}, nil
}

// each fails those waits that match.
func (w *watch) each(err error, match func(*wait) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for who := range w.waits {
		if match(who) {
			who.fail(err)
		}
	}
}

func (w *watch) disconnected(nc *nats.Conn, err error) {
	if err == nil || nc.IsClosed() {
		return // closed on purpose; requests under way learn of it from nats.go
	}
	w.log.Warn("the connection to NATS is lost; trying again, and calls wait", "url", Redacted(strings.Join(nc.Opts.Servers, ",")), "error", err)
	lost := fmt.Errorf("%w: the connection to NATS was lost: %w", lease.ErrNoCoordinator, err)
	w.each(lost, func(who *wait) bool { return who.asks })
}

func (w *watch) reconnected(nc *nats.Conn) {
	w.log.Info("connected to NATS again", "url", Redacted(nc.ConnectedUrl()))
}

func (w *watch) closed(nc *nats.Conn) { watches.Delete(nc) }

func (w *watch) failed(nc *nats.Conn, sub *nats.Subscription, err error) {
	switch {
	case errors.Is(err, nats.ErrPermissionViolation):
		w.forbidden(nc, err)
		w.mu.Lock()
		w.heard = err
		close(w.more)
		w.more = make(chan struct{})
		w.mu.Unlock()
	case unauthorized(err):
		w.warn("NATS refuses the credentials; showing them again, and calls wait", "url", Redacted(strings.Join(nc.Opts.Servers, ",")), "error", err)
	case errors.Is(err, nats.ErrSlowConsumer) && sub != nil:
		w.warn("messages come faster than they are taken; some are dropped", "subject", sub.Subject)
	default:
		w.warn("NATS reports a fault", "error", err)
	}
}

// caughtUp waits until w has heard of all that NATS has refused until now. What it
// refuses is known when a round trip is over, but is told from another goroutine.
func (w *watch) caughtUp(ctx context.Context, nc *nats.Conn) {
	for {
		w.mu.Lock()
		heard, more := w.heard, w.more
		w.mu.Unlock()
		last := nc.LastError() // each refusal is an error of its own
		if last == heard || !errors.Is(last, nats.ErrPermissionViolation) {
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}

const (
	// warnEvery is how often the same is said to operators: what NATS forbids once it may
	// forbid for each message.
	warnEvery = 10 * time.Second
	warnings  = 64 // that are remembered at most
)

// warn says something to operators, unless it has been said a moment ago.
func (w *watch) warn(text string, args ...any) {
	now := time.Now()
	what := fmt.Sprint(append([]any{text}, args...)...)
	w.mu.Lock()
	if at, ok := w.told[what]; ok && now.Sub(at) < warnEvery {
		w.mu.Unlock()
		return
	}
	if len(w.told) >= warnings {
		clear(w.told)
	}
	w.told[what] = now
	w.mu.Unlock()
	w.log.Warn(text, args...)
}

var forbiddenRE = regexp.MustCompile(`(?i)for (publish|subscription) to "([^"]+)"`)

func (w *watch) forbidden(nc *nats.Conn, err error) {
	found := forbiddenRE.FindStringSubmatch(err.Error())
	if found == nil {
		w.warn("NATS reports a fault", "error", err)
		return
	}
	act, subject := "publish to", found[2]
	if strings.EqualFold(found[1], "subscription") {
		act = "subscribe to"
	}
	said := fmt.Errorf("%w: this user may not %s %q; allow it in the NATS server's permissions", ErrPermission, act, permitted(subject))
	w.warn(said.Error())
	if act == "subscribe to" && strings.HasSuffix(subject, ".*") && !strings.HasPrefix(subject, root) {
		// The inbox on which all replies of this connection arrive.
		w.mu.Lock()
		w.inbox, w.inboxAt = said, nc.Stats().Reconnects
		w.mu.Unlock()
		w.each(said, func(who *wait) bool { return who.asks })
		return
	}
	w.each(said, func(who *wait) bool { return who.subject == subject })
}

// permitted gives the subject to permit. An inbox is another for each connection, so
// it is all of them.
func permitted(subject string) string {
	if strings.HasPrefix(subject, root) || strings.HasPrefix(subject, "$") {
		return subject
	}
	tokens := strings.Split(subject, ".")
	if len(tokens) < 2 {
		return subject
	}
	return strings.Join(tokens[:max(1, len(tokens)-2)], ".") + ".>"
}
