package bus

import (
	"bytes"
	"strings"

	"ration/lease"
)

// heard is what messages have said lately: holders say the same name and the same
// keys again and again. It saves reading them, and all leases of a key share its
// bytes. It is for one goroutine; nil remembers nothing.
type heard struct {
	holders map[string]lease.Holder // by the text of an id up to its slash
	keys    map[string][]lease.Key  // by the JSON of the list; nobody writes to a list of keys
}

// What is remembered at most: so many of each, of so many bytes. Beyond that it
// begins anew.
const (
	heardMost  = 4096
	heardBytes = 256
)

func newHeard() *heard {
	return &heard{holders: map[string]lease.Holder{}, keys: map[string][]lease.Key{}}
}

func (h *heard) readID(raw []byte, to *lease.ID) error {
	slash := bytes.LastIndexByte(raw, '/')
	if h == nil || slash < 1 || slash > heardBytes || bytes.IndexByte(raw, '\\') >= 0 {
		return readID(raw, to)
	}
	known, ok := h.holders[string(raw[1:slash])]
	if ok && canonical(raw[slash+1:len(raw)-1], 10, &to.Seq) {
		to.Holder = known
		return nil
	}
	if err := readID(raw, to); err != nil {
		return err
	}
	if len(h.holders) == heardMost {
		clear(h.holders)
	}
	to.Holder.Name = strings.Clone(to.Holder.Name) // not the whole id it is part of
	h.holders[string(raw[1:slash])] = to.Holder
	return nil
}

func (h *heard) readKeys(raw []byte, to *[]lease.Key) (err error) {
	if h == nil || len(raw) > heardBytes {
		return readKeys(raw, to)
	}
	if known, ok := h.keys[string(raw)]; ok {
		*to = known
		return nil
	}
	if err := readKeys(raw, to); err != nil {
		return err
	}
	if len(h.keys) == heardMost {
		clear(h.keys)
	}
	*to = (*to)[:len(*to):len(*to)] // who appends gets a list of its own
	h.keys[string(raw)] = *to
	return nil
}
