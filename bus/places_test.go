package bus

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// TestNobodyTakesAllPlaces: whoever takes all it can get, the next one still gets
// some, and a third of all is the most that one key gets.
func TestNobodyTakesAllPlaces(t *testing.T) {
	const most = 3000
	for _, tenants := range []int{1, 2, 5} {
		for _, keys := range []int{1, 2, 5} {
			p := newPlaces("requests", most)
			got := map[string]int{}
			for refused := 0; refused < 1000; {
				for i := range tenants * keys {
					tenant := fmt.Sprint(i % tenants)
					key := lease.Key(fmt.Sprintf("%s/%d", tenant, i/tenants))
					g, err := p.enter(tenant, 1)
					if err == nil {
						if err = p.sit(g, []lease.Key{key}, 1); err != nil {
							p.leave(g, nil, 1)
						}
					}
					if err != nil {
						require.ErrorIs(t, err, lease.ErrLineFull)
						refused++
						continue
					}
					got[string(key)]++
				}
			}
			for key, n := range got {
				require.LessOrEqual(t, n, most/3, key)
				require.Greater(t, n, most/(2*tenants*keys+3), "%d tenants with %d keys each: %v", tenants, keys, got)
			}
			for _, next := range []lease.Key{"0/next", "next/0"} { // another key, another tenant
				g, err := p.enter(next.Tenant(), 1)
				require.NoError(t, err)
				require.NoError(t, p.sit(g, []lease.Key{next}, 1))
			}
		}
	}
}

// TestPlacesComeBack: after any coming and going none is missing, and nothing is
// remembered of who has left.
func TestPlacesComeBack(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		p := newPlaces("requests", 100)
		type guest struct {
			*guests
			keys []lease.Key
			n    int
		}
		var in []guest
		sum := 0
		leave := func(i int) {
			p.leave(in[i].guests, in[i].keys, in[i].n)
			sum -= in[i].n
			in[i] = in[len(in)-1]
			in = in[:len(in)-1]
		}
		for step := range 2000 {
			if len(in) > 0 && rnd.IntN(3) == 0 {
				leave(rnd.IntN(len(in)))
			}
			n := 1 + rnd.IntN(5)
			g, err := p.enter(fmt.Sprint(rnd.IntN(3)), n)
			if err != nil {
				continue
			}
			sum += n
			in = append(in, guest{guests: g, n: n})
			if keys := []lease.Key{"a", lease.Key(fmt.Sprint(rnd.IntN(4)))}; p.sit(g, keys, n) == nil {
				in[len(in)-1].keys = keys
			}
			require.Equal(t, sum, p.used, "seed %d, step %d", seed, step)
			require.LessOrEqual(t, sum, p.most, "seed %d, step %d", seed, step)
		}
		for len(in) > 0 {
			leave(0)
		}
		require.Zero(t, p.used, "seed %d", seed)
		require.Zero(t, p.sat, "seed %d", seed)
		require.Empty(t, p.tenants, "seed %d", seed)
	}
}
