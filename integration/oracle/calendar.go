package oracle

import (
	"sync"
	"time"
	_ "time/tzdata" // where the machine has no data of zones
)

const (
	day   = 24 * time.Hour
	week  = 7 * day
	month = 31 * day // the longest one, where one number is wanted
)

// The clock of a zone may show a time twice, or never. An upstream that counts by
// the clock on its wall has one count for each name that the wall gives a period,
// whichever of two times it gives it: so that is how the oracle counts, and a
// repeated hour is one window. It looks at the wall for each spend anew.

// cellOf gives a number that stands for the name of the fixed window in which an
// instant lies: equal where the names are.
func cellOf(r Rule, at int64) int64 {
	if r.Zone == "" && r.Calendar == "" {
		return cell(at, int64(r.Window))
	}
	wall := time.Unix(0, at).In(zone(r.Zone))
	switch {
	case r.Calendar == "mo":
		return int64(wall.Year())*100 + int64(wall.Month())
	case r.Calendar == "w":
		year, number := wall.ISOWeek()
		return int64(year)*100 + int64(number)
	case r.Window == day:
		return int64(wall.Year())*1000 + int64(wall.YearDay())
	}
	_, ahead := wall.Zone()
	return cell(at+int64(ahead)*int64(time.Second), int64(r.Window))
}

// cellEnd gives the first instant after at that has another name. It walks there
// minute by minute, since clocks are set at full minutes.
func cellEnd(r Rule, at int64) int64 {
	if r.Zone == "" && r.Calendar == "" {
		return (cell(at, int64(r.Window)) + 1) * int64(r.Window)
	}
	name, step := cellOf(r, at), int64(min(time.Minute, r.Window))
	for {
		next := (cell(at, step) + 1) * step
		if cellOf(r, next) != name {
			return first(at, next, func(t int64) bool { return cellOf(r, t) != name })
		}
		at = next
	}
}

// first gives the first instant at which something is so, that is not so at low,
// is at high, and stays so once it is.
func first(low, high int64, so func(int64) bool) int64 {
	for high-low > 1 {
		if middle := low + (high-low)/2; so(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// cell numbers the multiples of a window; it rounds down below the epoch too.
func cell(at, window int64) int64 {
	n := at / window
	if at%window < 0 {
		n--
	}
	return n
}

var zones sync.Map // of *time.Location, by name

// zone gives a zone that was found before.
func zone(name string) *time.Location {
	found, err := findZone(name)
	if err != nil {
		panic("oracle: " + err.Error())
	}
	return found
}

func findZone(name string) (*time.Location, error) {
	if found, ok := zones.Load(name); ok {
		return found.(*time.Location), nil
	}
	found, err := time.LoadLocation(name)
	if err == nil {
		zones.Store(name, found)
	}
	return found, err
}
