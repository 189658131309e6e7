package bus

import (
	"strings"

	"ration/lease"
)

// units writes an object of amounts by the name of their unit, or nothing.
func (w *writer) units(name string, units lease.Units) {
	if len(units) == 0 {
		return
	}
	if err := units.Validate(); err != nil {
		w.fail(name, "%s", fault(err))
		return
	}
	w.object(name, func() {
		for _, u := range units {
			w.number(u.Unit, u.N)
		}
	})
}

// readUnits reads an object of amounts, in any order. What is 0 is left out.
func readUnits(raw []byte, to *lease.Units) error {
	*to = nil
	named, bad := 0, error(nil)
	err := object(raw, func(name string, raw []byte) (bool, error) {
		named++
		if bad != nil || named > MaxUnits {
			return false, nil
		}
		var n int64
		if bad = validUnit(name); bad != nil {
			return false, nil // a name that is none is not to stand in the place of the error
		}
		err := readNumber(raw, &n)
		if to.Of(name) == 0 {
			*to = to.Plus(name, n)
		}
		return true, err
	})
	switch {
	case err != nil:
		return err
	case bad != nil:
		return fieldError("", "%s", fault(bad))
	case named > MaxUnits:
		return fieldError("", "it names %d units; name at most %d", named, MaxUnits)
	}
	return nil
}

// fault is what is wrong with a value, without the sentinel that a field's error
// has of its own.
func fault(err error) string {
	return strings.TrimPrefix(err.Error(), lease.ErrBadRequest.Error()+": ")
}

func validUnit(name string) error { return lease.Units{{Unit: name, N: 1}}.Validate() }
