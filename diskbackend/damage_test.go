package diskbackend_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"ration/diskbackend"
	"ration/lease"
)

// made gives a directory with a state of many pages.
func made(t *testing.T) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	m, err := diskbackend.Open(dir)
	require.NoError(t, err)
	e := win(t, m)
	m.Unsync()
	turn := numbered(e, 1)
	for i := range 2000 {
		turn.Changes = append(turn.Changes, spent(lease.Key(fmt.Sprint("key/", i)), int64(i)))
	}
	require.NoError(t, m.Apply(t.Context(), turn))
	require.NoError(t, m.Close())
	return dir, filepath.Join(dir, "ration.db")
}

func TestDamagedFileIsNotTouched(t *testing.T) {
	put := func(bucket, name, value string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			db, err := bbolt.Open(path, 0o600, nil)
			require.NoError(t, err)
			require.NoError(t, db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucket)).Put([]byte(name), []byte(value)) }))
			require.NoError(t, db.Close())
		}
	}
	cut := func(to int64) func(t *testing.T, path string) {
		return func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, to)) }
	}
	for name, c := range map[string]struct {
		damage func(t *testing.T, path string)
		want   error
		says   string
	}{
		"empty":                 {cut(0), diskbackend.ErrDamaged, "there is nothing in it"},
		"a few bytes":           {cut(100), diskbackend.ErrDamaged, "first pages"},
		"two pages":             {cut(8192), diskbackend.ErrDamaged, "cannot be read"},
		"half":                  {cut(100_000), diskbackend.ErrDamaged, "cannot be read"},
		"a text":                {write(bytes.Repeat([]byte("limits: []\n"), 10_000)), diskbackend.ErrDamaged, "first pages"},
		"zeros":                 {write(make([]byte, 1<<16)), diskbackend.ErrDamaged, "first pages"},
		"another's store":       {foreign, diskbackend.ErrDamaged, "not of a coordinator"},
		"a store of nothing":    {write(nothing(t)), diskbackend.ErrDamaged, "there is nothing in it"},
		"of a newer version":    {put("about", "format", "2"), lease.ErrFormat, "is of format 2, and this version reads up to 1: start the newer version"},
		"of no version":         {put("about", "format", "x"), diskbackend.ErrDamaged, `its format number is "x"`},
		"a seat that is none":   {put("about", "seat", "{"), diskbackend.ErrDamaged, `the seat is "{"`},
		"a number that is none": {put("fields", "\x00\x05key/1w 10/1s", "1 2 x 4"), diskbackend.ErrDamaged, `the record of "key/1" has a field "w 10/1s"`},
		"a field of no prefix":  {put("fields", "\x00\x03elsw", "1 2 3 4"), diskbackend.ErrDamaged, "is of no prefix"},
		"kept to nowhen":        {put("prefixes", "\x00\x05key/1", "tomorrow"), diskbackend.ErrDamaged, `is kept to "tomorrow"`},
		"a prefix that is none": {put("prefixes", "\x00\x05key", "1"), diskbackend.ErrDamaged, "is no prefix"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, path := made(t)
			c.damage(t, path)
			before, err := os.ReadFile(path)
			require.NoError(t, err)
			_, err = diskbackend.Open(dir)
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, path)
			require.ErrorContains(t, err, "another directory", "what to do")
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, before, after)
			files, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, files, 1)
		})
	}
}

func write(all []byte) func(t *testing.T, path string) {
	return func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, all, 0o600)) }
}

func foreign(t *testing.T, path string) {
	require.NoError(t, os.Remove(path))
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte("someone"))
		return err
	}))
	require.NoError(t, db.Close())
}

// nothing is a store in which nothing was ever written.
func nothing(t *testing.T) []byte {
	path := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	all, err := os.ReadFile(path)
	require.NoError(t, err)
	return all
}

// TestHarmIsFoundOrHarmless: wherever bytes are overwritten, the state is either
// refused or opened; nothing falls over.
func TestHarmIsFoundOrHarmless(t *testing.T) {
	_, path := made(t)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	seeds := uint64(150)
	if proof {
		seeds = 5000
	}
	found := 0
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 3))
		harmed := bytes.Clone(whole)
		at, n := random.IntN(len(harmed)), 1+random.IntN(1+random.IntN(5000))
		for i := at; i < min(len(harmed), at+n); i++ {
			harmed[i] = byte(random.Int() * random.IntN(2))
		}
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "ration.db"), harmed, 0o600))
		m, err := diskbackend.Open(dir)
		if err != nil {
			require.ErrorIs(t, err, diskbackend.ErrDamaged, "seed %d", seed)
			found++
			continue
		}
		require.NoError(t, m.Close(), "seed %d", seed)
	}
	require.Positive(t, found)
	t.Logf("%d of %d found", found, seeds)
}

func TestMakingThatWasCutShortGoesOn(t *testing.T) {
	for name, left := range map[string][]byte{"no file": nil, "an empty one": {}, "one with nothing in it": nothing(t)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			sign := filepath.Join(dir, "ration.db.started")
			require.NoError(t, os.WriteFile(sign, nil, 0o600))
			if left != nil {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "ration.db"), left, 0o600))
			}
			win(t, open(t, dir))
			require.NoFileExists(t, sign)
		})
	}
	t.Run("one that is done", func(t *testing.T) {
		dir, _ := made(t)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "ration.db.started"), nil, 0o600))
		require.Equal(t, uint64(1), hasTurn(t, open(t, dir)))
	})
}

func TestDirectoryThatCannotBeUsedIsAnError(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	for _, in := range []string{file, filepath.Join(file, "below")} {
		_, err := diskbackend.Open(in)
		require.ErrorContains(t, err, "making "+in)
		require.ErrorContains(t, err, "something else has its place: give another directory")
	}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "folder", "ration.db"), 0o700))
	_, err := diskbackend.Open(filepath.Join(dir, "folder"))
	require.ErrorIs(t, err, diskbackend.ErrDamaged)
	require.ErrorContains(t, err, "it is no file")
}

func TestOneProcessHasTheDirectory(t *testing.T) {
	dir := t.TempDir()
	m := open(t, dir)
	_, err := diskbackend.Open(dir)
	require.ErrorIs(t, err, diskbackend.ErrInUse)
	require.ErrorContains(t, err, filepath.Join(dir, "ration.db")+" is locked: stop that one, or give this one a directory of its own")
	require.NoError(t, m.Close())
	open(t, dir)
}
