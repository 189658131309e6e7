package bus

import "ration/lease"

func encodeRecall(r lease.Recall) ([]byte, error) {
	w := &writer{}
	w.object("", func() {
		w.version()
		w.holder("holder", r.Holder)
		w.key(r.Key)
		if len(r.More) > 0 {
			w.keyList("more", r.More)
		}
		if r.Slots != 0 {
			w.number("slots", r.Slots)
		}
	})
	return w.done()
}

func decodeRecall(body []byte) (r lease.Recall, err error) {
	if err := opened(body); err != nil {
		return r, err
	}
	err = object(body, func(name string, raw []byte) (bool, error) {
		switch name {
		case "holder":
			return true, readHolder(raw, &r.Holder)
		case "key":
			return true, readKey(raw, &r.Key)
		case "key64":
			return true, readKey64(raw, &r.Key)
		case "more":
			return true, readKeys(raw, &r.More)
		case "slots":
			return true, readNumber(raw, &r.Slots)
		}
		return false, nil
	}, "holder")
	if err == nil && r.Key == "" {
		err = fieldError("key", "it is missing")
	}
	return r, err
}

// encodeQuestion and decodeQuestion: the key whose status is asked for, or
// none for all.
func encodeQuestion(key lease.Key) []byte {
	w := &writer{}
	w.object("", func() {
		w.version()
		if key != "" {
			w.key(key)
		}
	})
	return w.b
}

func decodeQuestion(body []byte) (key lease.Key, err error) {
	if len(body) == 0 {
		return "", nil
	}
	if err := opened(body); err != nil {
		return "", err
	}
	err = object(body, func(name string, raw []byte) (bool, error) {
		switch name {
		case "key":
			return true, readKey(raw, &key)
		case "key64":
			return true, readKey64(raw, &key)
		}
		return false, nil
	})
	return key, err
}
