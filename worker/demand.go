package worker

import (
	"slices"
	"time"
)

// memory is how long the estimate of demand looks back: a tenth of a second
// follows a burst and outlives the gap between two calls.
const memory = 100 * time.Millisecond

// demand estimates how fast tokens are taken. It decides how much is asked for,
// never what may be spent, so it may be rough, and is a float.
type demand struct {
	rate  float64 // tokens a second
	at    time.Duration
	taken int64
	units []unitDemand // of those that calls took of late

	batch     int64         // what to ask for while nobody else wants it
	grantedAt time.Duration // when the last grant came
	granted   int64         // how large it was
	grown     bool          // whether batch was settled anew since
}

// look folds what was taken since the last look into the rate. With a memory m
// and a gap d this is r·m/(m+d) + taken/(m+d): one token never counts for more
// than one in m, however short the gap.
func (d *demand) look(now time.Duration) {
	gap := now - d.at
	if gap <= 0 {
		return
	}
	m, g := memory.Seconds(), gap.Seconds()
	d.rate = (d.rate*m + float64(d.taken)) / (m + g)
	d.lookUnits(m, g)
	d.taken, d.at = 0, now
}

// unitDemand estimates how fast a unit besides calls is taken.
type unitDemand struct {
	unit  string
	rate  float64
	taken int64
}

func (d *demand) tookUnit(unit string, n int64) {
	i := slices.IndexFunc(d.units, func(u unitDemand) bool { return u.unit == unit })
	if i < 0 {
		i = len(d.units)
		d.units = append(d.units, unitDemand{unit: unit})
	}
	d.units[i].taken += n
}

// lookUnits does for units what look does for tokens. A unit that is hardly taken
// any more beside them is forgotten.
func (d *demand) lookUnits(memory, gap float64) {
	if len(d.units) == 0 {
		return
	}
	for i := range d.units {
		u := &d.units[i]
		u.rate = (u.rate*memory + float64(u.taken)) / (memory + gap)
		u.taken = 0
	}
	d.units = slices.DeleteFunc(d.units, func(u unitDemand) bool { return d.per(&u) < 1e-6 })
}

// per is how many of a unit are taken for one token.
func (d *demand) per(u *unitDemand) float64 {
	if d.rate <= 0 {
		return 0
	}
	return u.rate / d.rate
}

// within is how many tokens are taken in a span, at the present rate, rounded
// down.
func (d *demand) within(span time.Duration) int64 {
	n := d.rate * span.Seconds()
	if n > 1<<40 {
		return 1 << 40
	}
	return int64(n)
}

// gotBatch notes a grant of n tokens. One that fell short of what was wanted says
// nothing of how fast a batch is used up.
func (d *demand) gotBatch(now time.Duration, n int64, short bool) {
	d.grantedAt, d.granted, d.grown = now, n, short
}

// usedUp is called when more is wanted. A batch that did not last for span is
// doubled, once; one that did is brought to what span takes.
func (d *demand) usedUp(now, span time.Duration, most int64) {
	if d.grown {
		return
	}
	d.grown = true
	if d.granted > 0 && now-d.grantedAt < span {
		d.batch = 2 * max(d.batch, d.granted)
	} else {
		d.batch = d.within(span)
	}
	d.batch = min(max(d.batch, 1), most)
}
