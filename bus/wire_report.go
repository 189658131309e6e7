package bus

import (
	"ration/lease"
)

// encodeReport gives the messages that say r: one, or as many as its leases
// need to keep the bounds. Counts are cumulative and a message touches only
// what it names, so the order and the division of messages do not matter.
func encodeReport(r lease.Report) ([][]byte, error) {
	head := &writer{b: make([]byte, 0, 512)}
	head.b = append(head.b, '{')
	head.version()
	head.holder("holder", r.Holder)
	head.duration("sent", r.Sent)
	head.flag("heartbeat", r.Heartbeat)
	head.flag("goodbye", r.Goodbye)
	if head.err != nil {
		return nil, head.err
	}
	p := pages{head: head.b}
	for i := range r.Counts {
		w := &writer{}
		w.count(&r.Counts[i])
		if err := p.add("counts", w); err != nil {
			return nil, err
		}
	}
	for _, g := range r.GivenUp {
		w := &writer{}
		w.object("", func() {
			w.id("id", g.ID)
			w.keys(g.Keys)
		})
		if err := p.add("given_up", w); err != nil {
			return nil, err
		}
	}
	return p.close(), nil
}

// pages fills one message after another.
type pages struct {
	head []byte
	done [][]byte
	w    writer
	list string // the list being filled; "" before a page has any
	n    int    // its entries
}

func (p *pages) add(list string, entry *writer) error {
	if entry.err != nil {
		return within(list, entry.err)
	}
	// What closes a page and opens a list on it takes less than 32 bytes.
	if _, err := sized(entry.b, nil); err != nil || len(p.head)+len(entry.b)+32 > MaxMessage {
		return fieldError(list, "one entry of %d bytes does not fit into a message of %d", len(entry.b), MaxMessage)
	}
	if p.list != "" && (len(p.w.b)+len(entry.b)+32 > MaxMessage || list == p.list && p.n == MaxCounts) {
		p.flush()
	}
	if p.list == "" {
		p.w.b = append(make([]byte, 0, len(p.head)+len(entry.b)+32), p.head...)
	}
	if list != p.list {
		if p.list != "" {
			p.w.b = append(p.w.b, ']')
		}
		p.w.name(list)
		p.w.b = append(p.w.b, '[')
		p.list, p.n = list, 0
	}
	p.w.next()
	p.w.b = append(p.w.b, entry.b...)
	p.n++
	return nil
}

func (p *pages) flush() {
	p.done = append(p.done, append(p.w.b, "]}"...))
	p.w.b, p.list, p.n = nil, "", 0
}

func (p *pages) close() [][]byte {
	if p.list != "" {
		p.flush()
	}
	if len(p.done) == 0 {
		p.done = append(p.done, append(p.head, '}'))
	}
	return p.done
}

func (w *writer) count(c *lease.Count) {
	w.object("", func() {
		w.id("id", c.ID)
		w.keys(c.Keys)
		if len(c.Points) > 0 {
			w.list("points", len(c.Points), func(i int) {
				w.object("", func() {
					w.number("count", c.Points[i].Count)
					w.duration("age", c.Points[i].Age)
					w.units("units", c.Points[i].Units)
				})
			})
		}
		for _, f := range []struct {
			name string
			n    int64
		}{{"returned", c.Returned}, {"freed", c.Freed}, {"cut", c.Cut}, {"over", c.Over}} {
			if f.n != 0 {
				w.number(f.name, f.n)
			}
		}
		w.units("returned_units", c.ReturnedUnits)
		w.units("over_units", c.OverUnits)
	})
}

func decodeReport(body []byte) (r lease.Report, err error) {
	if err := opened(body); err != nil {
		return r, err
	}
	err = object(body, func(name string, raw []byte) (bool, error) {
		switch name {
		case "holder":
			return true, readHolder(raw, &r.Holder)
		case "sent":
			return true, readDuration(raw, &r.Sent)
		case "heartbeat":
			return true, readFlag(raw, &r.Heartbeat)
		case "goodbye":
			return true, readFlag(raw, &r.Goodbye)
		case "counts":
			return true, list(raw, MaxCounts, func(raw []byte) error {
				r.Counts = append(r.Counts, lease.Count{})
				return readCount(raw, &r.Counts[len(r.Counts)-1])
			})
		case "given_up":
			return true, list(raw, MaxCounts, func(raw []byte) error {
				r.GivenUp = append(r.GivenUp, lease.GivenUp{})
				return readGivenUp(raw, &r.GivenUp[len(r.GivenUp)-1])
			})
		}
		return false, nil
	}, "holder", "sent")
	return r, err
}

func readCount(raw []byte, to *lease.Count) error {
	return object(raw, func(name string, raw []byte) (bool, error) {
		switch name {
		case "id":
			return true, readID(raw, &to.ID)
		case "keys":
			return true, readKeys(raw, &to.Keys)
		case "points":
			return true, list(raw, MaxMessage, func(raw []byte) error {
				to.Points = append(to.Points, lease.Point{})
				return readPoint(raw, &to.Points[len(to.Points)-1])
			})
		case "returned":
			return true, readNumber(raw, &to.Returned)
		case "returned_units":
			return true, readUnits(raw, &to.ReturnedUnits)
		case "over":
			return true, readNumber(raw, &to.Over)
		case "over_units":
			return true, readUnits(raw, &to.OverUnits)
		case "freed":
			return true, readNumber(raw, &to.Freed)
		case "cut":
			return true, readNumber(raw, &to.Cut)
		}
		return false, nil
	}, "id", "keys")
}

func readPoint(raw []byte, to *lease.Point) error {
	return object(raw, func(name string, raw []byte) (bool, error) {
		switch name {
		case "count":
			return true, readNumber(raw, &to.Count)
		case "age":
			return true, readDuration(raw, &to.Age)
		case "units":
			return true, readUnits(raw, &to.Units)
		}
		return false, nil
	}, "count", "age")
}

func readGivenUp(raw []byte, to *lease.GivenUp) error {
	return object(raw, func(name string, raw []byte) (bool, error) {
		switch name {
		case "id":
			return true, readID(raw, &to.ID)
		case "keys":
			return true, readKeys(raw, &to.Keys)
		}
		return false, nil
	}, "id", "keys")
}

func (w *writer) reply(r lease.Reply) {
	w.object("", func() {
		w.version()
		if len(r.Renewed) > 0 {
			w.list("renewed", len(r.Renewed), func(i int) {
				w.object("", func() {
					w.id("id", r.Renewed[i].ID)
					w.duration("slot_ttl", r.Renewed[i].SlotTTL)
				})
			})
		}
		w.ids("ended", r.Ended)
		w.ids("acknowledged", r.Acknowledged)
		w.epoch(r.Epoch)
	})
}

// decodeReply gives the reply, or the error that the coordinator answered.
func decodeReply(body []byte) (r lease.Reply, err error) {
	if err := answered(body); err != nil {
		return r, err
	}
	err = object(body, func(name string, raw []byte) (bool, error) {
		switch name {
		case "renewed":
			return true, list(raw, MaxCounts, func(raw []byte) error {
				r.Renewed = append(r.Renewed, lease.Renewal{})
				return readRenewal(raw, &r.Renewed[len(r.Renewed)-1])
			})
		case "ended":
			return true, readIDs(raw, &r.Ended)
		case "acknowledged":
			return true, readIDs(raw, &r.Acknowledged)
		case "epoch":
			return true, readEpoch(raw, &r.Epoch)
		}
		return false, nil
	}, "epoch")
	return r, err
}

func readRenewal(raw []byte, to *lease.Renewal) error {
	return object(raw, func(name string, raw []byte) (bool, error) {
		switch name {
		case "id":
			return true, readID(raw, &to.ID)
		case "slot_ttl":
			return true, readDuration(raw, &to.SlotTTL)
		}
		return false, nil
	}, "id", "slot_ttl")
}
