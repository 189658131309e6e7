package redisbackend

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"ration/internal/recordtext"
	"ration/lease"
)

// Mirror is the mirror and the seat of one partition of a cell. It is safe for
// concurrent use, but turns are applied one after the other.
type Mirror struct {
	server *Server
	seat   string // its key
	policy string // that of the policy
	prefix string // of the keys of records

	mu      sync.Mutex
	counted time.Time // when replicas were
	asked   time.Time // when a write last asked whether there are any

	replicas replicas
	stray    sync.Once // was told

	// Of the turn that is written.
	turn   sync.Mutex
	writer recordtext.Writer
	keys   []string
	args   []any
	sets   []any
}

var (
	_ lease.Mirror  = (*Mirror)(nil)
	_ lease.Elector = (*Mirror)(nil)
)

// Mirror gives that of a partition of a cell.
func (s *Server) Mirror(cell string, partition int) *Mirror {
	tag := fmt.Sprintf("{ration:%s:%d}:", url.PathEscape(cell), partition)
	return &Mirror{server: s, seat: tag + "seat", policy: tag + "policy", prefix: tag + "k:"}
}

// key is that of a record. A slash stays as it is, so that people can read it.
func (m *Mirror) key(k lease.Key) string {
	return m.prefix + strings.ReplaceAll(url.PathEscape(string(k)), "%2F", "/")
}

func (m *Mirror) unkey(text string) (lease.Key, error) {
	k, err := url.PathUnescape(strings.TrimPrefix(text, m.prefix))
	if err != nil {
		return "", err
	}
	return lease.ParseKey(k)
}

// node is the one that has the partition.
func (m *Mirror) node(ctx context.Context) (*redis.Client, error) {
	switch c := m.server.client.(type) {
	case *redis.ClusterClient:
		return c.MasterForKey(ctx, m.seat)
	case *redis.Client:
		return c, nil
	}
	return nil, errReply
}

// Load gives the records of keys.
func (m *Mirror) Load(ctx context.Context, e lease.Epoch, keys []lease.Key) ([]lease.Record, error) {
	names := []string{m.seat}
	for _, k := range keys {
		names = append(names, m.key(k))
	}
	reply, err := m.run(ctx, loadScript, names, []any{decimal(e.Number), mark(e)})
	if err != nil {
		return nil, err
	}
	if _, _, err := words(reply, e); err != nil {
		return nil, err
	}
	if len(reply) != len(names) {
		return nil, errReply
	}
	records := make([]lease.Record, len(keys))
	for i, k := range keys {
		if records[i], err = record(k, reply[i+1]); err != nil {
			records[i] = lease.Record{Key: k, Damaged: fmt.Errorf("redisbackend: %w", err)}
		}
	}
	return records, nil
}

// record reads a record, or says what it has that is none.
func record(k lease.Key, reply any) (lease.Record, error) {
	if err, ok := reply.(error); ok {
		return lease.Record{}, err
	}
	fields, err := list(reply)
	if err != nil {
		return lease.Record{}, err
	}
	return recordtext.Read(k, fields)
}

// Keys gives a page of the keys that have records. A name that stands for no key is
// somebody else's, and left alone.
func (m *Mirror) Keys(ctx context.Context, e lease.Epoch, from string) ([]lease.Key, string, error) {
	if _, err := m.Load(ctx, e, nil); err != nil {
		return nil, "", err
	}
	var cursor uint64
	if from != "" {
		var err error
		if cursor, err = strconv.ParseUint(from, 10, 64); err != nil {
			return nil, "", err
		}
	}
	node, err := m.node(ctx)
	if err != nil {
		return nil, "", m.server.explain(err)
	}
	found, cursor, err := node.Scan(ctx, cursor, m.prefix+"*", 1000).Result()
	if err != nil {
		return nil, "", m.server.explain(err)
	}
	keys := make([]lease.Key, 0, len(found))
	for _, name := range found {
		k, err := m.unkey(name)
		if err != nil {
			m.strange(name, err)
			continue
		}
		keys = append(keys, k)
	}
	if cursor == 0 {
		return keys, "", nil
	}
	return keys, strconv.FormatUint(cursor, 10), nil
}

// strange tells of the first name among those of records that is none.
func (m *Mirror) strange(name string, err error) {
	if m.server.config.Log == nil {
		return
	}
	m.stray.Do(func() {
		m.server.config.Log.Warn("a key in Redis has no name of a record, and is left alone; delete it", "key", name, "error", err)
	})
}

// forEver is for how long the policy is kept.
const forEver = "0"

// Policy gives the policy in force.
func (m *Mirror) Policy(ctx context.Context) (p lease.PolicyRecord, err error) {
	all, err := m.server.client.HMGet(ctx, m.policy, "revision", "text").Result()
	if err != nil {
		return p, m.server.explain(err)
	}
	number, some := all[0].(string)
	text, whole := all[1].(string)
	switch {
	case !some && !whole:
		return p, nil
	case some && whole:
		p.Text = text
		p.Revision, err = strconv.ParseUint(number, 10, 64)
	default:
		err = errReply
	}
	if err != nil {
		return p, fmt.Errorf("redisbackend: the policy in %s cannot be read: %w; delete that key and the field policy of %s, and the leader's is written at its next start", m.policy, err, m.seat)
	}
	return p, nil
}

// keepMost is the longest TTL that a record is given.
const keepMost = 200 * 365 * 24 * time.Hour

// Apply records the turn after the last one.
func (m *Mirror) Apply(ctx context.Context, t *lease.Turn) error {
	m.turn.Lock()
	defer m.turn.Unlock()
	m.keys = append(m.keys[:0], m.seat)
	m.args = append(m.args[:0], decimal(t.Epoch.Number), mark(t.Epoch), decimal(t.Seq), decimal(t.Seq-1), "")
	fields := len(m.args)
	m.args = append(append(m.args, pulse(t.Instant, t.Wall)...), "dial", dial(t.Dial))
	if t.Sound {
		m.args = append(m.args, "lost", "", "lagged", "")
	}
	if t.Policy != nil {
		m.args = append(m.args, "policy", revision(t.Policy.Revision, t.Policy.Available))
	}
	m.args[fields-1] = strconv.Itoa(len(m.args) - fields)
	if t.Policy != nil {
		m.keys = append(m.keys, m.policy)
		m.args = append(m.args, "whole", forEver, "0", "4", "revision", decimal(t.Policy.Revision), "text", t.Policy.Text)
	}
	for i := range t.Changes {
		m.change(&t.Changes[i], t.Epoch.Number)
	}
	reply, err := m.write(ctx, applyScript, m.keys, m.args)
	clear(m.args)
	clear(m.keys)
	if err != nil {
		return err
	}
	switch word, _, err := words(reply, t.Epoch); {
	case err != nil:
		return err
	case word != "applied" && word != "already":
		return errReply
	}
	return nil
}

func (m *Mirror) change(c *lease.Change, epoch uint64) {
	m.keys = append(m.keys, m.key(c.Key))
	what := "change"
	switch {
	case c.Gone:
		what = "gone"
	case c.Whole:
		what = "whole"
	}
	keep := strconv.FormatInt((min(c.Keep, keepMost) + time.Millisecond - 1).Milliseconds(), 10) // rounded up
	at := len(m.args)
	m.args = append(m.args, what, keep, "", "")
	m.sets = m.sets[:0]
	m.writer.Fields(c, epoch,
		func(field, value string) { m.sets = append(m.sets, field, value) },
		func(field string) { m.args = append(m.args, field) })
	m.args[at+2], m.args[at+3] = strconv.Itoa(len(m.args)-at-4), strconv.Itoa(len(m.sets))
	m.args = append(m.args, m.sets...)
	clear(m.sets)
}

// list reads a list of texts.
func list(reply any) ([]string, error) {
	all, ok := reply.([]any)
	if !ok {
		return nil, errReply
	}
	list := make([]string, len(all))
	for i := range all {
		if list[i], ok = all[i].(string); !ok {
			return nil, errReply
		}
	}
	return list, nil
}

// texts reads a list of names and values in turn.
func texts(reply any) (map[string]string, error) {
	all, err := list(reply)
	if err != nil || len(all)%2 != 0 {
		return nil, errReply
	}
	fields := map[string]string{}
	for i := 0; i < len(all); i += 2 {
		fields[all[i]] = all[i+1]
	}
	return fields, nil
}
