package recordtext

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ration/algo"
	"ration/lease"
)

// Read gives the record of a key from its fields and their values in turn. A field
// that is none is an error.
func Read(key lease.Key, fields []string) (lease.Record, error) {
	r := lease.Record{Key: key}
	windows := map[string]int{}
	whole := map[string]bool{} // by the names of fields
	some := len(fields) > 0
	window := func(rule string) *algo.State {
		i, ok := windows[rule]
		if !ok {
			i = len(r.Windows)
			windows[rule] = i
			r.Windows = append(r.Windows, lease.WindowRecord{Rule: rule})
		}
		return &r.Windows[i].State
	}
	for ; len(fields) >= 2; fields = fields[2:] {
		if err := read(&r, window, fields[0], fields[1]); err != nil {
			return r, fmt.Errorf("the record of %q has a field %q with %.200q: %w", key, fields[0], fields[1], err)
		}
		if kind := fields[0][0]; kind == 'e' || kind == 'w' {
			whole[fields[0]] = true
		}
	}
	if some && !whole["e"] {
		return r, fmt.Errorf("the record of %q lacks the field \"e\"", key)
	}
	for _, w := range r.Windows {
		if field := "w " + w.Rule; !whole[field] {
			return r, fmt.Errorf("the record of %q lacks the field %q", key, field)
		}
	}
	for i := range r.Windows {
		marks := r.Windows[i].State.Marks
		slices.SortFunc(marks, func(a, b algo.Mark) int { return cmp.Compare(a.At, b.At) })
	}
	return r, nil
}

var errNone = errors.New("that is none of this format")

func read(r *lease.Record, window func(string) *algo.State, field, value string) (err error) {
	kind, name, _ := strings.Cut(field, " ")
	n := numbers{}
	switch kind {
	case "e":
		r.Written, err = strconv.ParseUint(value, 10, 64)
		return err
	case "w":
		st := window(name)
		st.Seen = algo.Instant(n.next(&value, ' '))
		st.Held, st.Spent, st.Own = n.next(&value, ' '), n.next(&value, ' '), n.next(&value, ' ')
	case "m":
		last := strings.LastIndexByte(name, ' ')
		if last < 0 {
			return errNone
		}
		st, at := window(name[:last]), name[last+1:]
		st.Marks = append(st.Marks, algo.Mark{At: algo.Instant(n.next(&at, ' ')), N: n.next(&value, ' ')})
	case "b":
		var b lease.Batch
		if b, err = batch(name, value); err == nil {
			r.Batches = append(r.Batches, b)
		}
		return err
	case "p":
		r.Pause, err = pause(value)
		return err
	case "c":
		c := lease.ChargeRecord{ID: name, N: n.next(&value, ' '), Until: algo.Instant(n.next(&value, ' '))}
		c.Unit = value
		r.Charges = append(r.Charges, c)
	default:
		return errNone
	}
	return n.err
}

func pause(value string) (*lease.Pause, error) {
	n := numbers{}
	p := &lease.Pause{Since: algo.Instant(n.next(&value, ' ')), Until: algo.Instant(n.next(&value, ' '))}
	for _, text := range []*string{&p.By, &p.Reason} {
		quoted, err := strconv.QuotedPrefix(value)
		if err != nil {
			return nil, errNone
		}
		if *text, err = strconv.Unquote(quoted); err != nil {
			return nil, err
		}
		value = strings.TrimPrefix(value[len(quoted):], " ")
	}
	return p, n.err
}

func batch(name, value string) (b lease.Batch, err error) {
	parts := strings.SplitN(name, " ", 4)
	if len(parts) < 4 {
		return b, errNone
	}
	n := numbers{}
	b.ID.Seq = n.unsigned(parts[0], 10)
	b.Began = algo.Instant(n.next(&parts[1], ' '))
	b.ID.Holder = lease.Holder{Name: parts[3], Incarnation: n.unsigned(parts[2], 16)}
	for {
		quoted, err := strconv.QuotedPrefix(value)
		if err != nil {
			return b, err
		}
		key, err := strconv.Unquote(quoted)
		if err != nil {
			return b, err
		}
		b.Keys = append(b.Keys, lease.Key(key))
		value = value[len(quoted):]
		if strings.HasPrefix(value, "|") {
			break
		}
		value = strings.TrimPrefix(value, " ")
	}
	for _, text := range strings.Fields(value[1:]) {
		parts := strings.Split(text, ":")
		if len(parts) < 3 {
			return b, errNone
		}
		r := lease.LeaseRecord{Seq: n.unsigned(parts[0], 10), Tokens: n.part(parts[1]), Slots: n.part(parts[2])}
		for _, u := range parts[3:] {
			unit, amount, ok := strings.Cut(u, "=")
			if !ok {
				return b, errNone
			}
			r.Units = append(r.Units, lease.UnitPart{Unit: unit, Part: n.part(amount)})
		}
		b.Leases = append(b.Leases, r)
	}
	return b, n.err
}

// numbers reads numbers, and keeps the first error.
type numbers struct{ err error }

// next takes the number before the next separator, or before the end, off a text.
func (n *numbers) next(text *string, separator byte) int64 {
	number, rest, _ := strings.Cut(*text, string(separator))
	*text = rest
	v, err := strconv.ParseInt(number, 10, 64)
	n.err = cmp.Or(n.err, err)
	return v
}

func (n *numbers) unsigned(text string, base int) uint64 {
	v, err := strconv.ParseUint(text, base, 64)
	n.err = cmp.Or(n.err, err)
	return v
}

func (n *numbers) part(text string) (p lease.Part) {
	if text == "" {
		return p
	}
	p.Granted, p.Spent, p.Returned = n.next(&text, ','), n.next(&text, ','), n.next(&text, ',')
	p.Expires = algo.Instant(n.next(&text, ','))
	return p
}
