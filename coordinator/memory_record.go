package coordinator

import (
	"encoding/binary"

	"ration/algo"
	"ration/lease"
)

// packer writes records as bytes: of a million keys that were used once a record
// is mostly zeros and instants close to each other. Nothing outside this process
// reads them.
type packer struct {
	texts []string          // of rules, each once
	place map[string]uint64 // in texts
	b     []byte            // being written
}

// packedKey is the key that a packed record begins with.
func packedKey(packed string) string {
	u := unpacker{rest: packed}
	return u.text()
}

// pack gives a record in one string that begins with its key.
func (p *packer) pack(r lease.Record) string {
	p.b = p.b[:0]
	p.text(string(r.Key))
	p.count(len(r.Windows))
	base := algo.Instant(0)
	for _, w := range r.Windows {
		st := w.State
		p.number(p.rule(w.Rule))
		base = p.instant(st.Seen, base)
		p.amount(st.Held)
		p.amount(st.Spent)
		p.amount(st.Own)
		p.count(len(st.Marks))
		for _, m := range st.Marks {
			p.instant(m.At, base)
			p.amount(m.N)
		}
	}
	p.count(len(r.Leases))
	for _, le := range r.Leases {
		p.text(le.ID.Holder.Name)
		p.number(le.ID.Holder.Incarnation)
		p.number(le.ID.Seq)
		p.count(len(le.Keys))
		for _, k := range le.Keys {
			p.text(string(k))
		}
		base = p.instant(le.Began, base)
		p.part(le.Tokens, base)
		p.part(le.Slots, base)
		p.count(len(le.Units))
		for _, u := range le.Units {
			p.number(p.rule(u.Unit))
			p.part(u.Part, base)
		}
	}
	return string(p.b)
}

func (p *packer) part(of lease.Part, base algo.Instant) {
	p.amount(of.Granted)
	p.amount(of.Spent)
	p.amount(of.Returned)
	p.instant(of.Expires, base)
}

// rule gives the number of a text that many records have: a rule, or a unit.
func (p *packer) rule(text string) uint64 {
	at, ok := p.place[text]
	if !ok {
		at = uint64(len(p.texts))
		p.place[text] = at
		p.texts = append(p.texts, text)
	}
	return at
}

func (p *packer) number(n uint64) { p.b = binary.AppendUvarint(p.b, n) }
func (p *packer) count(n int)     { p.number(uint64(n)) }
func (p *packer) amount(n int64)  { p.b = binary.AppendVarint(p.b, n) }

func (p *packer) text(s string) {
	p.count(len(s))
	p.b = append(p.b, s...)
}

func (p *packer) instant(t, base algo.Instant) algo.Instant {
	p.amount(int64(t - base))
	return t
}

// unpack gives back what was packed.
func (p *packer) unpack(packed string) lease.Record {
	u := unpacker{rest: packed}
	r := lease.Record{Key: lease.Key(u.text())}
	base := algo.Instant(0)
	for range u.number() {
		w := lease.WindowRecord{Rule: p.texts[u.number()]}
		st := &w.State
		base = u.instant(base)
		st.Seen = base
		st.Held, st.Spent, st.Own = u.amount(), u.amount(), u.amount()
		for range u.number() {
			st.Marks = append(st.Marks, algo.Mark{At: u.instant(base), N: u.amount()})
		}
		r.Windows = append(r.Windows, w)
	}
	for range u.number() {
		var le lease.LeaseRecord
		le.ID.Holder.Name = u.text()
		le.ID.Holder.Incarnation, le.ID.Seq = u.number(), u.number()
		for range u.number() {
			le.Keys = append(le.Keys, lease.Key(u.text()))
		}
		base = u.instant(base)
		le.Began = base
		le.Tokens, le.Slots = u.part(base), u.part(base)
		for range u.number() {
			le.Units = append(le.Units, lease.UnitPart{Unit: p.texts[u.number()], Part: u.part(base)})
		}
		r.Leases = append(r.Leases, le)
	}
	return r
}

// unpacker reads what packer has written.
type unpacker struct{ rest string }

func (u *unpacker) number() (n uint64) {
	for shift := 0; ; shift += 7 {
		b := u.rest[0]
		u.rest = u.rest[1:]
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n
		}
	}
}

func (u *unpacker) amount() int64 {
	n := u.number()
	return int64(n>>1) ^ -int64(n&1)
}

func (u *unpacker) part(base algo.Instant) lease.Part {
	return lease.Part{Granted: u.amount(), Spent: u.amount(), Returned: u.amount(), Expires: u.instant(base)}
}

func (u *unpacker) text() string {
	n := u.number()
	s := u.rest[:n]
	u.rest = u.rest[n:]
	return s
}

func (u *unpacker) instant(base algo.Instant) algo.Instant { return base + algo.Instant(u.amount()) }
