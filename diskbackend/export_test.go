package diskbackend

import "go.etcd.io/bbolt"

// Unsync lets it leave what it writes to the kernel.
func (m *Mirror) Unsync() { m.db.NoSync = true }

// Get gets what is under a name in a bucket.
func (m *Mirror) Get(bucket, name string) (value string, err error) {
	err = m.db.View(func(tx *bbolt.Tx) error {
		value = string(tx.Bucket([]byte(bucket)).Get([]byte(name)))
		return nil
	})
	return value, err
}
