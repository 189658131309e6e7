package algo

import (
	"math"
	"time"
)

// monday is how far the first Monday lies behind the Unix epoch, a Thursday.
const monday = 4 * day

// calendar cuts time into periods by the clock on the wall of a zone: those
// under a day start at multiples of their length since the Unix epoch, days at
// midnight, weeks on Monday, and months on the 1st.
type calendar struct {
	period Period
	// zone is nil for UTC.
	zone *time.Location
}

func newCalendar(r Rule) calendar {
	zone, _ := loadZone(r.Zone)
	return calendar{period: r.Period, zone: zone}
}

// start gives when the period began that t lies in.
func (c calendar) start(t Instant) Instant {
	if c.zone == nil {
		return c.floor(t)
	}
	return c.startInZone(t)
}

// next gives when the period after the one that t lies in begins.
func (c calendar) next(t Instant) Instant {
	if c.zone == nil {
		return c.above(t)
	}
	return c.nextInZone(t)
}

// floor gives the last boundary at or before t, on a clock that is never set.
func (c calendar) floor(t Instant) Instant {
	if c.period.Months > 0 {
		return c.month(t, 0)
	}
	return t.Add(-t.phase(c.period.Length, c.anchor()))
}

// above gives the first boundary after t, on a clock that is never set.
func (c calendar) above(t Instant) Instant {
	if c.period.Months > 0 {
		return c.month(t, c.period.Months)
	}
	return t.Add(c.period.Length - t.phase(c.period.Length, c.anchor()))
}

func (c calendar) anchor() time.Duration {
	if c.period.Length == week {
		return monday
	}
	return 0
}

// month gives the first instant of the month that lies so many after that of t.
func (c calendar) month(t Instant, after int) Instant {
	year, month, _ := time.Unix(0, int64(t)).UTC().Date()
	return instantOf(time.Date(year, month+time.Month(after), 1, 0, 0, 0, 0, time.UTC))
}

// instantOf gives the instant of a whole second. Months and the rules of zones
// reach beyond the first and the last instant, which then stand for it.
func instantOf(t time.Time) Instant {
	switch s := t.Unix(); {
	case s < math.MinInt64/int64(time.Second):
		return firstInstant
	case s > math.MaxInt64/int64(time.Second):
		return lastInstant
	}
	return Instant(t.UnixNano())
}
