package bus

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"

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
	return &watch{log: log, waits: map[*wait]struct{}{}}
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
	case errors.Is(err, nats.ErrSlowConsumer) && sub != nil:
		w.log.Warn("messages come faster than they are taken; some are dropped", "subject", sub.Subject)
	default:
		w.log.Warn("NATS reports a fault", "error", err)
	}
}

var forbiddenRE = regexp.MustCompile(`(?i)for (publish|subscription) to "([^"]+)"`)

func (w *watch) forbidden(nc *nats.Conn, err error) {
	found := forbiddenRE.FindStringSubmatch(err.Error())
	if found == nil {
		w.log.Warn("NATS reports a fault", "error", err)
		return
	}
	act, subject := "publish to", found[2]
	if strings.EqualFold(found[1], "subscription") {
		act = "subscribe to"
	}
	said := fmt.Errorf("%w: this user may not %s %q; allow it in the NATS server's permissions", ErrPermission, act, subject)
	w.log.Warn(said.Error())
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
