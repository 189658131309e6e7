package lease

// A leader that does not wait for its mirror takes turns that nobody records. What they
// change is not kept turn by turn, which would grow with time, but as the prefixes of which
// the mirror does not have what the ledger knows: these are written back, each whole, when
// it works again.

// owed is those prefixes. There are at most as many as the ledger has, and as the mirror
// had when it began.
type owed struct {
	places map[Key]int // in list
	list   []debt
}

type debt struct {
	key Key
	had bool // the mirror may have a record, which goes if the prefix is at rest by then
}

func (o *owed) add(key Key, had bool) {
	if i, known := o.places[key]; known {
		o.list[i].had = o.list[i].had || had
		return
	}
	if o.places == nil {
		o.places = map[Key]int{}
	}
	o.places[key] = len(o.list)
	o.list = append(o.list, debt{key, had})
}

// remove takes a prefix off; the last one moves there.
func (o *owed) remove(key Key) {
	i, known := o.places[key]
	if !known {
		return
	}
	last := len(o.list) - 1
	o.list[i] = o.list[last]
	o.places[o.list[i].key] = i
	o.list[last] = debt{}
	o.list = shrunk(o.list[:last])
	if delete(o.places, key); last == 0 {
		*o = owed{}
	}
}

// gone notes that a prefix is at rest: nothing is owed of one that was never recorded.
func (o *owed) gone(key Key, had bool) {
	if o.add(key, had); !o.list[o.places[key]].had {
		o.remove(key)
	}
}

// Owe lets the turns from here on carry no changes, since nobody records them. What they
// change is owed to the mirror.
func (l *Ledger) Owe() { l.unrecorded = true }

// OweTurn says of a turn with changes that the mirror will never have it.
func (l *Ledger) OweTurn(t *Turn) {
	l.unwritten = l.unwritten || t.Policy != nil
	for _, c := range t.Changes {
		l.owed.add(c.Key, true)
		if a, ok := l.accounts.Get(c.Key); ok {
			a.written, a.copied = 0, nil
		}
	}
}

// Repay lets the turns from here on carry what they change, and each a part of what is
// owed. Turn.Behind says whether there is more.
func (l *Ledger) Repay() { l.unrecorded = false }

// owe takes down what the turn has changed.
func (l *Ledger) owe() {
	for i, a := range l.touched {
		a.touched = false
		l.owed.add(a.key, a.written != 0)
		a.written, a.copied = 0, nil
		l.touched[i] = nil
	}
	l.touched = shrunk(l.touched[:0])
	for i, b := range l.altered {
		b.changed = false
		l.altered[i] = nil
		if len(b.leases) == 0 {
			b.accounts = nil
		}
	}
	l.altered = shrunk(l.altered[:0])
}

// repay records some of what is owed.
func (l *Ledger) repay() {
	for range min(rewriteMost, len(l.owed.list)) {
		d := l.owed.list[len(l.owed.list)-1]
		l.owed.remove(d.key)
		if a, ok := l.accounts.Get(d.key); ok {
			l.touch(a)
		} else {
			l.turn.Changes = append(l.turn.Changes, Change{Key: d.key, Gone: true})
		}
	}
}

// behind says that the mirror does not have all yet when it has the turns so far.
func (l *Ledger) behind() bool {
	return l.unrecorded || l.rewriting || l.unwritten || len(l.owed.list) > 0
}

// Granted is how many leases began in the turn, and with how much.
func (t *Turn) Granted() (leases int64, all Amount) {
	for _, le := range t.begun {
		all.Tokens += le.tokens.Granted
		all.Slots += le.slots.Granted
		for _, u := range le.units {
			all.Units = all.Units.Plus(u.Unit, u.Granted)
		}
	}
	return int64(len(t.begun)), all
}
