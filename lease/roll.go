package lease

// roll lists what is looked at one after the other. Each member knows its place,
// so that one leaves without being searched for; the last one moves there.
type roll[T listed] []T

// listed is what keeps its place in a roll.
type listed interface{ at() *uint32 }

func (r *roll[T]) enter(x T) {
	*x.at() = uint32(len(*r))
	*r = append(*r, x)
}

func (r *roll[T]) leave(x T) {
	last := len(*r) - 1
	moved := (*r)[last]
	(*r)[*x.at()] = moved
	*moved.at() = *x.at()
	clear((*r)[last:])
	*r = shrunk((*r)[:last])
}

// shrunk gives a list less room if it fills less than a quarter of it.
func shrunk[T any](list []T) []T {
	if cap(list) > 1024 && len(list) < cap(list)/4 {
		return append(make([]T, 0, 2*len(list)), list...)
	}
	return list
}
