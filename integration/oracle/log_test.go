package oracle_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ration/integration/oracle"

	"github.com/stretchr/testify/require"
)

func TestLogReadsWhatWorkersWrite(t *testing.T) {
	spends, err := oracle.Read(strings.NewReader(`{"key":"demo","sent":1700000000000000001}
{"item":"a","key":"demo","exit":0,"sent":"1700000000000000003","cost":4,"done":1700000000000000009}
{"key64":"/w==","sent":1700000000000000005,"units":{"tokens":1200}}
{"key":"t/a","more":["t/b",{"key64":"dC//"}],"sent":1700000000000000007}
`))
	require.NoError(t, err)
	require.Equal(t, []oracle.Spend{
		{Key: "demo", At: 1700000000000000001, Cost: 1},
		{Key: "demo", At: 1700000000000000003, Cost: 4, Done: 1700000000000000009},
		{Key: "\xff", At: 1700000000000000005, Cost: 1, Units: map[string]int64{"tokens": 1200}},
		{Key: "t/a", More: []string{"t/b", "t/\xff"}, At: 1700000000000000007, Cost: 1},
	}, spends)
	for key, n := range map[string]int{"t": 1, "t/a": 1, "t/b": 1, "t/\xff": 1, "t/c": 0, "demo": 2, "": 4} {
		require.Len(t, oracle.Under(spends, key), n, key)
	}
	spends, err = oracle.Read(strings.NewReader(""))
	require.NoError(t, err)
	require.Empty(t, spends)
}

func TestBadLineIsNamed(t *testing.T) {
	for _, bad := range []string{`{"key":"demo"}`, `{"sent":1}`, `{"key":"demo","sent":1.5}`, `{"key":"demo","sent":"x"}`, `null`, ``, `{"key":`} {
		_, err := oracle.Read(strings.NewReader("{\"key\":\"demo\",\"sent\":1}\n" + bad + "\n{\"key\":\"demo\",\"sent\":2}\n"))
		require.ErrorContains(t, err, "line 2", bad)
		require.NotErrorIs(t, err, oracle.ErrTorn)
	}
}

func TestTornLastLineIsToldApart(t *testing.T) {
	spends, err := oracle.Read(strings.NewReader("{\"key\":\"demo\",\"sent\":1}\n{\"key\":\"de"))
	require.ErrorIs(t, err, oracle.ErrTorn)
	require.Len(t, spends, 1)
	spends, err = oracle.Read(strings.NewReader(`{"key":"demo","sent":1}`))
	require.NoError(t, err, "whole but for its newline")
	require.Len(t, spends, 1)
}

func TestFilesAreMergedInOrder(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	a := write("a", "{\"key\":\"a\",\"sent\":3}\n{\"key\":\"a\",\"sent\":5}\n")
	b := write("b", "{\"key\":\"b\",\"sent\":4}\n{\"key\":\"b\",\"sent\":1}\n{")
	spends, err := oracle.ReadFiles(a, b, filepath.Join(dir, "none"))
	require.ErrorIs(t, err, oracle.ErrTorn)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, b)
	require.Equal(t, []oracle.Spend{
		{Key: "b", At: 1, Cost: 1}, {Key: "a", At: 3, Cost: 1}, {Key: "b", At: 4, Cost: 1}, {Key: "a", At: 5, Cost: 1},
	}, spends)
}
