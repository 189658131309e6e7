package coordinator

import (
	"context"
	"math/rand/v2"

	"ration/lease"
)

// alone is the mirror and the seat of a coordinator that has neither: nothing
// outlives it, so nothing is kept, and nobody else can lead.
type alone struct{}

var (
	_ lease.Mirror  = alone{}
	_ lease.Elector = alone{}
)

func (alone) Campaign(ctx context.Context) (lease.Epoch, error) {
	return lease.Epoch{Number: 1, Mark: rand.Uint64()}, ctx.Err()
}

func (alone) Renew(context.Context, lease.Epoch) error { return nil }

func (alone) Resign(context.Context, lease.Epoch) error { return nil }

func (alone) Load(_ context.Context, key lease.Key) (lease.Record, error) {
	return lease.Record{Key: key}, nil
}

func (alone) Apply(context.Context, *lease.Turn) error { return nil }
