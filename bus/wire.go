package bus

import (
	"bytes"
	"fmt"

	"ration/lease"
)

// Bounds of a message to a coordinator. What passes one of them is refused as
// lease.ErrBadRequest, naming it.
const (
	// Format is the format number that this package writes and reads.
	Format = 1
	// MaxMessage is the most bytes a message to a coordinator may have.
	MaxMessage = 64 << 10
	// MaxRequests is the most requests that one message may carry.
	MaxRequests = 256
	// MaxKeys is the most keys that a request or a lease may name.
	MaxKeys = lease.MaxKeys
	// MaxUnits is the most units besides calls that an amount may name.
	MaxUnits = lease.MaxUnits
	// MaxCounts is the most leases, and the most ids given up, that a message
	// may name.
	MaxCounts = 4096
)

// checkFormat finds the format number before anything else is judged, since
// another format may have other fields.
func checkFormat(body []byte) error {
	if usual(body) {
		return nil
	}
	v := int64(-1)
	err := object(body, func(name string, raw []byte) (bool, error) {
		if name != "v" {
			return false, nil
		}
		return true, readNumber(raw, &v)
	}, "v")
	switch {
	case err != nil:
		return err
	case v != Format:
		return fmt.Errorf("%w: the message has format %d, this side speaks %d", lease.ErrFormat, v, Format)
	}
	return nil
}

// usual says that the format number stands first, is ours, and stands nowhere else:
// so do most who write messages.
func usual(body []byte) bool {
	first := []byte(`{"v":1,`)
	return bytes.HasPrefix(body, first) && bytes.Count(body, first[1:5]) == 1 && bytes.IndexByte(body, '\\') < 0
}

// opened checks what every message to a coordinator has to keep.
func opened(body []byte) error {
	if len(body) > MaxMessage {
		return tooLarge(len(body))
	}
	if err := document(body); err != nil {
		return err
	}
	return checkFormat(body)
}

// sized checks a message before it is sent.
func sized(body []byte, err error) ([]byte, error) {
	if err == nil && len(body) > MaxMessage {
		err = tooLarge(len(body))
	}
	if err != nil {
		return nil, err
	}
	return body, nil
}

func tooLarge(n int) error {
	return fmt.Errorf("%w: it has %d bytes, at most %d are allowed", lease.ErrBadRequest, n, MaxMessage)
}

func encodeRequest(r lease.Request) ([]byte, error) {
	w := &writer{b: make([]byte, 0, 256)}
	w.object("", func() {
		w.version()
		w.duration("sent", r.Sent)
		w.request(&r)
	})
	return sized(w.done())
}

// request writes what a request has besides the message's sent.
func (w *writer) request(r *lease.Request) {
	w.id("id", r.ID)
	w.keys(r.Keys)
	w.amount("want", r.Want)
	w.amount("need", r.Need)
	w.duration("patience", r.Patience)
	if r.Class != "" {
		w.text(classField, r.Class)
	}
}

// requestFields are what each request has to have besides, and classField what it may have.
var requestFields = []string{"id", "keys", "want", "need", "patience"}

const classField = "class"

// request reads a field of a request, but sent.
func (h *heard) request(name string, raw []byte, r *lease.Request) (known bool, err error) {
	switch name {
	case "id":
		return true, h.readID(raw, &r.ID)
	case "keys":
		return true, h.readKeys(raw, &r.Keys)
	case "want":
		return true, readAmount(raw, &r.Want)
	case "need":
		return true, readAmount(raw, &r.Need)
	case "patience":
		return true, readDuration(raw, &r.Patience)
	case classField:
		return true, readText(raw, &r.Class)
	}
	return false, nil
}
