package recordtext

import (
	"strconv"

	"ration/lease"
)

// Writer writes changes. Its zero value is ready; it is not safe for concurrent use.
type Writer struct {
	text []byte
	ends []int
}

// Fields calls set for each field that the change sets, and drop for each that goes.
// The texts are of one string, which lives as long as any of them. Nothing is called
// for a change that is Gone.
func (w *Writer) Fields(c *lease.Change, epoch uint64, set func(field, value string), drop func(field string)) {
	if c.Gone {
		return
	}
	w.text, w.ends = w.text[:0], w.ends[:0]
	if c.Stale {
		epoch = c.Since
	}
	w.epoch(epoch)
	for i := range c.Windows {
		w.window(&c.Windows[i])
	}
	for i := range c.Batches {
		w.batch(&c.Batches[i])
	}
	if c.Paused {
		w.pause(c.Pause)
	}
	for i := range c.Charges {
		w.charge(&c.Charges[i])
	}
	all, from := string(w.text), 0
	for i := 0; i < len(w.ends); i += 2 {
		field, value := all[from:w.ends[i]], all[w.ends[i]:w.ends[i+1]]
		if from = w.ends[i+1]; value == "" {
			drop(field)
			continue
		}
		set(field, value)
	}
}

func (w *Writer) epoch(number uint64) {
	w.text = append(w.text, 'e')
	w.end()
	w.text = strconv.AppendUint(w.text, number, 10)
	w.end()
}

func (w *Writer) window(r *lease.WindowRecord) {
	st := &r.State
	w.text = append(append(w.text, "w "...), r.Rule...)
	w.end()
	for i, n := range [...]int64{int64(st.Seen), st.Held, st.Spent, st.Own} {
		if i > 0 {
			w.text = append(w.text, ' ')
		}
		w.number(n)
	}
	w.end()
	for _, m := range st.Marks {
		w.text = append(append(append(w.text, "m "...), r.Rule...), ' ')
		w.number(int64(m.At))
		w.end()
		if m.N != 0 {
			w.number(m.N)
		}
		w.end()
	}
}

func (w *Writer) batch(b *lease.Batch) {
	w.text = append(w.text, "b "...)
	w.text = append(strconv.AppendUint(w.text, b.ID.Seq, 10), ' ')
	w.number(int64(b.Began))
	w.text = append(w.text, ' ')
	w.text = append(strconv.AppendUint(w.text, b.ID.Holder.Incarnation, 16), ' ')
	w.text = append(w.text, b.ID.Holder.Name...)
	w.end()
	if len(b.Leases) > 0 {
		for i, k := range b.Keys {
			if i > 0 {
				w.text = append(w.text, ' ')
			}
			w.text = strconv.AppendQuoteToASCII(w.text, string(k))
		}
		w.text = append(w.text, '|')
	}
	for i := range b.Leases {
		if i > 0 {
			w.text = append(w.text, ' ')
		}
		w.lease(&b.Leases[i])
	}
	w.end()
}

func (w *Writer) lease(r *lease.LeaseRecord) {
	w.text = append(strconv.AppendUint(w.text, r.Seq, 10), ':')
	w.part(&r.Tokens)
	w.text = append(w.text, ':')
	w.part(&r.Slots)
	for i := range r.Units {
		u := &r.Units[i]
		w.text = append(append(append(w.text, ':'), u.Unit...), '=')
		w.part(&u.Part)
	}
}

func (w *Writer) part(p *lease.Part) {
	if *p == (lease.Part{}) {
		return
	}
	for i, n := range [...]int64{p.Granted, p.Spent, p.Returned, int64(p.Expires)} {
		if i > 0 {
			w.text = append(w.text, ',')
		}
		w.number(n)
	}
}

func (w *Writer) pause(p *lease.Pause) {
	w.text = append(w.text, 'p')
	w.end()
	if p != nil {
		w.number(int64(p.Since))
		w.text = append(w.text, ' ')
		w.number(int64(p.Until))
		w.text = strconv.AppendQuoteToASCII(append(w.text, ' '), p.By)
		w.text = strconv.AppendQuoteToASCII(append(w.text, ' '), p.Reason)
	}
	w.end()
}

func (w *Writer) charge(c *lease.ChargeRecord) {
	w.text = append(append(w.text, "c "...), c.ID...)
	w.end()
	if c.Until != 0 {
		w.number(c.N)
		w.text = append(w.text, ' ')
		w.number(int64(c.Until))
		if c.Unit != "" {
			w.text = append(append(w.text, ' '), c.Unit...)
		}
	}
	w.end()
}

func (w *Writer) number(n int64) { w.text = strconv.AppendInt(w.text, n, 10) }

// end ends a field or a value.
func (w *Writer) end() { w.ends = append(w.ends, len(w.text)) }
