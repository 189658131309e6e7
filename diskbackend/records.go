package diskbackend

import (
	"bytes"
	"context"

	"go.etcd.io/bbolt"

	"ration/internal/recordtext"
	"ration/lease"
)

// Load gives the records of keys. Where one cannot be read, that is ErrDamaged.
func (m *Mirror) Load(ctx context.Context, e lease.Epoch, keys []lease.Key) ([]lease.Record, error) {
	if _, err := m.use(e); err != nil {
		return nil, err
	}
	all := make([][]string, len(keys))
	err := m.view(func(tx *bbolt.Tx) error {
		for i, key := range keys {
			if err := ctx.Err(); err != nil {
				return err
			}
			all[i] = texts(tx, place(key))
		}
		return nil
	})
	if err != nil {
		return nil, failed("loading from", m.path, err)
	}
	records := make([]lease.Record, len(keys))
	for i, key := range keys {
		if records[i], err = recordtext.Read(key, all[i]); err != nil {
			return nil, damaged(m.path, "%w", err)
		}
	}
	return records, nil
}

// texts gives the fields of a prefix and their values in turn.
func texts(tx *bbolt.Tx, id []byte) (all []string) {
	c := tx.Bucket(fields).Cursor()
	for name, value := c.Seek(id); bytes.HasPrefix(name, id); name, value = c.Next() {
		all = append(all, string(name[len(id):]), string(value))
	}
	return all
}

// keysMost is how many keys are given at a time.
const keysMost = 1000

// Keys gives some of the keys that have records. No key is left out but those whose
// records come meanwhile.
func (m *Mirror) Keys(_ context.Context, e lease.Epoch, from string) (keys []lease.Key, next string, err error) {
	if _, err := m.use(e); err != nil {
		return nil, "", err
	}
	err = m.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket(prefixes).Cursor()
		id, _ := c.Seek([]byte(from))
		for ; id != nil && len(keys) < keysMost; id, _ = c.Next() {
			keys = append(keys, lease.Key(id[2:]))
		}
		next = string(id)
		return nil
	})
	if err != nil {
		return nil, "", failed("listing keys of", m.path, err)
	}
	return keys, next, nil
}
