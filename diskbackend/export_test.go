package diskbackend

import "go.etcd.io/bbolt"

// Unsync lets it leave what it writes to the kernel.
func (m *Mirror) Unsync() { m.db.NoSync = true }

// Put puts something where no turn would, under a name in a bucket.
func (m *Mirror) Put(bucket, name, value string) error {
	return m.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucket)).Put([]byte(name), []byte(value)) })
}

// Get gets what is under a name in a bucket.
func (m *Mirror) Get(bucket, name string) (value string, err error) {
	err = m.db.View(func(tx *bbolt.Tx) error {
		value = string(tx.Bucket([]byte(bucket)).Get([]byte(name)))
		return nil
	})
	return value, err
}
