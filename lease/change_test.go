package lease_test

import "ration/lease"

// mirrored is what a mirror has of each prefix.
type mirrored map[lease.Key]lease.Record

// keep takes up a turn.
func (m mirrored) keep(t *lease.Turn) {
	for _, c := range t.Changes {
		r := m[c.Key]
		r.Key = c.Key
		if r.Change(c, max(1, t.Epoch.Number)); r.Empty() {
			delete(m, c.Key)
			continue
		}
		m[c.Key] = r
	}
}
