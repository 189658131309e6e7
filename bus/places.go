package bus

import (
	"fmt"

	"ration/lease"
)

// places bounds what is under way, and lets nobody have all of it: a tenant may
// have as much as is still free, so that one alone comes to half of all places, two
// come to a third each, and something is always left for the next. A key may have
// as much as its tenant could still take, so that one alone comes to a third of all.
type places struct {
	what    string // that they are taken by, for people
	most    int
	used    int
	sat     int // of those used
	tenants map[string]*guests
}

// guests is what is under way for one tenant.
type guests struct {
	token string
	used  int
	sat   int
	keys  map[lease.Key]int
}

func newPlaces(what string, most int) *places {
	return &places{what: what, most: most, tenants: map[string]*guests{}}
}

// enter takes n places for a tenant, or says why not.
func (p *places) enter(token string, n int) (*guests, error) {
	g := p.tenants[token]
	if g == nil {
		g = &guests{token: token}
	}
	if g.used+n > p.most-p.used {
		return nil, fmt.Errorf("%w: as many %s of tenant token %.80q are under way as may be, %d of %d of all; ask again later",
			lease.ErrLineFull, p.what, token, g.used, p.used)
	}
	if g.used == 0 {
		p.tenants[token] = g
	}
	g.used += n
	p.used += n
	return g, nil
}

// sit takes n places at each of the keys for who has entered, or says at which
// key there is none.
func (p *places) sit(g *guests, keys []lease.Key, n int) error {
	for _, k := range keys {
		if g.keys[k]+g.sat+n > p.most-p.sat {
			return fmt.Errorf("%w: as many %s of key %.80q are under way as may be, %d of %d of its tenant; ask again later",
				lease.ErrLineFull, p.what, k, g.keys[k], g.sat)
		}
	}
	g.sat += n
	p.sat += n
	if g.keys == nil {
		g.keys = map[lease.Key]int{}
	}
	for _, k := range keys {
		g.keys[k] += n
	}
	return nil
}

// leave gives back what was entered, and sat at the keys.
func (p *places) leave(g *guests, keys []lease.Key, n int) {
	if len(keys) > 0 {
		g.sat -= n
		p.sat -= n
	}
	for _, k := range keys {
		if g.keys[k] -= n; g.keys[k] == 0 {
			delete(g.keys, k)
		}
	}
	g.used -= n
	p.used -= n
	if g.used == 0 {
		delete(p.tenants, g.token)
	}
}
