package coordinator

import (
	"context"

	"ration/lease"
)

// alone is the mirror and the seat of a coordinator that has neither: nothing
// outlives it, so nothing is kept, and nobody else can lead.
type alone struct{}

var (
	_ lease.Mirror  = alone{}
	_ lease.Elector = alone{}
)

func (alone) Look(context.Context) (lease.Seat, error) { return lease.Seat{}, nil }

func (alone) Campaign(ctx context.Context, _, _ lease.Seat) error { return ctx.Err() }

func (alone) Renew(context.Context, lease.Epoch, lease.Pulse) error { return nil }

func (alone) Resign(context.Context, lease.Epoch) error { return nil }

func (alone) Load(_ context.Context, _ lease.Epoch, keys []lease.Key) ([]lease.Record, error) {
	records := make([]lease.Record, len(keys))
	for i, key := range keys {
		records[i].Key = key
	}
	return records, nil
}

func (alone) Keys(context.Context, lease.Epoch, string) ([]lease.Key, string, error) {
	return nil, "", nil
}

func (alone) Policy(context.Context) (lease.PolicyRecord, error) { return lease.PolicyRecord{}, nil }

func (alone) Apply(context.Context, *lease.Turn) error { return nil }
