package sim

import (
	"reflect"

	"ration/lease"
)

// stats adds up what all ledgers counted. What one adopted, another had granted.
func (s *site) stats() (sum lease.Stats) {
	sum.Refused = map[string]int64{}
	for _, l := range s.all {
		if l.course != nil {
			add(&sum, l.ledger.Stats())
		}
		for _, past := range l.past {
			add(&sum, past)
		}
	}
	return sum
}

// add adds the counts of s to those of sum.
func add(sum *lease.Stats, s lease.Stats) {
	to, from := reflect.ValueOf(sum).Elem(), reflect.ValueOf(s)
	for i := range to.NumField() {
		if f := to.Field(i); f.Kind() == reflect.Int64 {
			f.SetInt(f.Int() + from.Field(i).Int())
		}
	}
	for code, n := range s.Refused {
		sum.Refused[code] += n
	}
}
