package redisbackend

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ration/algo"
	"ration/lease"
)

// format is that of the seat and the records.
const format = "1"

// Look reads the seat.
func (m *Mirror) Look(ctx context.Context) (lease.Seat, error) {
	reply, err := m.run(ctx, lookScript, []string{m.seat}, nil)
	if err != nil {
		return lease.Seat{}, err
	}
	if len(reply) < 4 {
		return lease.Seat{}, errReply
	}
	fields, err := texts(reply[3])
	if err != nil {
		return lease.Seat{}, err
	}
	s, err := readSeat(fields)
	if err != nil {
		return s, err
	}
	seconds, _ := reply[0].(string)
	micros, _ := reply[1].(string)
	s.Running, _ = reply[2].(string)
	s.Now, err = clock(seconds + " " + micros)
	if m.due(&m.counted, 500*time.Millisecond) {
		m.countReplicas(ctx)
	}
	return s, err
}

func readSeat(fields map[string]string) (lease.Seat, error) {
	var s lease.Seat
	if len(fields) == 0 {
		return s, nil
	}
	if got := fields["format"]; got != format {
		return s, fmt.Errorf("%w: the mirror is of format %.20q, this coordinator reads %s; start a version that reads it", lease.ErrFormat, got, format)
	}
	r := reader{fields: fields}
	s.Epoch = lease.Epoch{Number: r.unsigned("epoch", 10), Mark: r.unsigned("mark", 16)}
	s.Name, s.Mirror = fields["name"], r.unsigned("mirror", 16)
	s.Partitions = int(r.signed("partitions"))
	s.Vacant = fields["vacant"] != "0"
	s.Seq = r.unsigned("seq", 10)
	s.Pulse.Beat = r.unsigned("beat", 10)
	s.Pulse.Instant, s.Pulse.Wall = algo.Instant(r.signed("instant")), algo.Instant(r.signed("wall"))
	s.Pulse.Holders = int(r.signed("holders"))
	s.Run = fields["run"]
	s.Lost, s.Lagged = r.doubt("lost"), r.doubt("lagged")
	s.Revision, s.Available = r.policy()
	r.fail("dial", s.Dial.UnmarshalText([]byte(fields["dial"])))
	if r.err == nil {
		s.Clock, r.err = clock(fields["clock"])
	}
	return s, r.err
}

// Campaign puts next into the seat if that has not moved since it was seen.
func (m *Mirror) Campaign(ctx context.Context, seen, next lease.Seat) error {
	vacant := "0"
	if seen.Vacant {
		vacant = "1"
	}
	args := []any{
		decimal(seen.Epoch.Number), mark(seen.Epoch), decimal(seen.Seq), decimal(seen.Pulse.Beat), vacant,
		format, strconv.Itoa(next.Partitions),
		"epoch", decimal(next.Epoch.Number), "mark", mark(next.Epoch), "name", next.Name,
		"mirror", strconv.FormatUint(next.Mirror, 16),
		"beat", decimal(next.Pulse.Beat), "holders", strconv.Itoa(next.Pulse.Holders), "run", next.Run,
		"lost", doubt(next.Lost), "lagged", doubt(next.Lagged), "dial", dial(next.Dial),
	}
	reply, err := m.write(ctx, campaignScript, []string{m.seat}, append(args, pulse(next.Pulse.Instant, next.Pulse.Wall)...))
	if err != nil {
		return err
	}
	word, has, err := words(reply, next.Epoch)
	switch {
	case err != nil:
		return err
	case word == "won":
		return nil
	case word == "moved":
		return lease.ErrMoved
	case word == "format":
		return fmt.Errorf("%w: the mirror is of format %.20q, this coordinator writes %s; start a version that reads it", lease.ErrFormat, has, format)
	case word == "partitions":
		return fmt.Errorf("%w: Redis at %s has %s, this coordinator %d; start it with --partitions %s, or another --cell", lease.ErrPartitions, m.server.name, has, next.Partitions, has)
	}
	return errReply
}

// Renew shows that the leader lives.
func (m *Mirror) Renew(ctx context.Context, e lease.Epoch, p lease.Pulse) error {
	args := append([]any{decimal(e.Number), mark(e), decimal(p.Revision), "beat", decimal(p.Beat), "holders", strconv.Itoa(p.Holders)}, pulse(p.Instant, p.Wall)...)
	if p.Run != "" {
		args = append(args, "run", p.Run)
	}
	reply, err := m.run(ctx, renewScript, []string{m.seat}, args)
	if err != nil {
		return err
	}
	word, _, err := words(reply, e)
	if err == nil && word == "policy" {
		err = lease.ErrPolicy
	}
	return err
}

// Resign gives the seat up.
func (m *Mirror) Resign(ctx context.Context, e lease.Epoch) error {
	reply, err := m.write(ctx, resignScript, []string{m.seat}, []any{decimal(e.Number), mark(e)})
	if err != nil {
		return err
	}
	_, _, err = words(reply, e)
	return err
}

func pulse(instant, wall algo.Instant) []any {
	return []any{"instant", strconv.FormatInt(int64(instant), 10), "wall", strconv.FormatInt(int64(wall), 10)}
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

func mark(e lease.Epoch) string { return strconv.FormatUint(e.Mark, 16) }

func dial(d lease.Dial) string {
	text, _ := d.MarshalText() // which never fails
	return string(text)
}

// revision is the field of the seat that names the policy.
func revision(number uint64, available bool) string {
	if available {
		return decimal(number) + " available"
	}
	return decimal(number) + " strict"
}

func parseEpoch(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) }

func doubt(d lease.Doubt) string {
	if d.Epoch == 0 {
		return ""
	}
	return fmt.Sprintf("%d %d %d", d.Epoch, d.At, d.Lag)
}

// clock reads seconds and microseconds.
func clock(text string) (algo.Instant, error) {
	seconds, micros, _ := strings.Cut(text, " ")
	s, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return 0, err
	}
	us, err := strconv.ParseInt(micros, 10, 64)
	return algo.Instant(time.Unix(s, us*1000).UnixNano()), err
}

// reader reads fields of the seat, and keeps the first error.
type reader struct {
	fields map[string]string
	err    error
}

func (r *reader) fail(name string, err error) {
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("redisbackend: the seat has a field %s with %.80q: %w; set it right with HSET", name, r.fields[name], err)
	}
}

func (r *reader) unsigned(name string, base int) uint64 {
	n, err := strconv.ParseUint(r.fields[name], base, 64)
	r.fail(name, err)
	return n
}

func (r *reader) signed(name string) int64 {
	n, err := strconv.ParseInt(r.fields[name], 10, 64)
	r.fail(name, err)
	return n
}

// policy reads what revision writes. There may be none.
func (r *reader) policy() (number uint64, available bool) {
	text, ok := r.fields["policy"]
	if !ok {
		return 0, false
	}
	digits, mode, _ := strings.Cut(text, " ")
	number, err := strconv.ParseUint(digits, 10, 64)
	r.fail("policy", err)
	return number, mode == "available"
}

func (r *reader) doubt(name string) (d lease.Doubt) {
	if r.fields[name] == "" {
		return d
	}
	_, err := fmt.Sscan(r.fields[name], &d.Epoch, &d.At, &d.Lag)
	r.fail(name, err)
	return d
}
