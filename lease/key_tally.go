package lease

// keyTally counts the keys of each tenant, also of those of whom nothing else is known: with
// one tenant a key, counting each apart would take more than the keys do. A tenant is
// counted in a place of each row together with those that meet it there, so its keys
// are no more than the least of its places. Who meets another in both rows, one in
// sixteen millions, is refused a key only where both together have too many.
type keyTally [2][4096]int32

func (t *keyTally) add(tenant string, n int32) {
	for row, place := range places(tenant) {
		t[row][place] += n
	}
}

// most is how many keys a tenant has at the most.
func (t *keyTally) most(tenant string) int {
	at := places(tenant)
	return int(min(t[0][at[0]], t[1][at[1]]))
}

// places are from the two halves of FNV-1a, so that runs repeat.
func places(tenant string) [2]uint32 {
	h := uint64(14695981039346656037)
	for i := range len(tenant) {
		h = (h ^ uint64(tenant[i])) * 1099511628211
	}
	return [2]uint32{uint32(h>>32) % 4096, uint32(h^h>>16) % 4096}
}
