package sim

import (
	"context"

	"ration/coordinator"
	"ration/lease"
)

// load restores keys, and now and then all there are.
func (l *lessor) load(keys []lease.Key, then func()) {
	if !l.course.Loaded() && l.world.rand.IntN(200) == 0 {
		var all []lease.Key
		l.mirror(nil, func(epoch lease.Epoch) call {
			return func(ctx context.Context, m *coordinator.Memory) (err error) {
				all, _, err = m.Keys(ctx, epoch, "")
				return err
			}
		}, func() {
			for _, k := range all {
				if !l.ledger.Has(k) {
					keys = append(keys, k)
				}
			}
			l.restore(keys, func() {
				l.course.AllLoaded(l.ledger)
				then()
			})
		})
		return
	}
	l.restore(keys, then)
}

func (l *lessor) restore(keys []lease.Key, then func()) {
	if len(keys) == 0 {
		then()
		return
	}
	var records []lease.Record
	l.mirror(nil, func(epoch lease.Epoch) call {
		return func(ctx context.Context, m *coordinator.Memory) error {
			got, err := m.Load(ctx, epoch, keys)
			if err == nil {
				records = got
			}
			return err
		}
	}, func() {
		for _, r := range records {
			l.ledger.Restore(r)
		}
		then()
	})
}
