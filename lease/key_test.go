package lease_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

func TestKeysAreAnyBytesWithoutEmptySegments(t *testing.T) {
	for _, good := range []string{"a", "a/b/c", "\x00", "\xff/\xfe", " ", "a b/{x}", "日本", strings.Repeat("a", lease.MaxKeyLen)} {
		k, err := lease.ParseKey(good)
		require.NoError(t, err, "%q", good)
		require.Equal(t, lease.Key(good), k)
	}
	for bad, says := range map[string]string{
		"":                                     "it is empty; give at least one segment",
		"/":                                    "segment 1 of \"/\" is empty; remove the extra slash",
		"/a":                                   "segment 1 of",
		"a/":                                   "segment 2 of",
		"a//b":                                 "segment 2 of",
		"a/b//":                                "segment 3 of",
		strings.Repeat("a", lease.MaxKeyLen+1): "it has 1025 bytes, at most 1024 are allowed",
	} {
		k, err := lease.ParseKey(bad)
		require.ErrorIs(t, err, lease.ErrBadKey, "%.20q", bad)
		require.ErrorContains(t, err, says)
		require.Empty(t, k)
	}
}

func TestPrefixesAreWholeSegments(t *testing.T) {
	for key, want := range map[lease.Key][]lease.Key{
		"a":         {"a"},
		"a/b/c":     {"a", "a/b", "a/b/c"},
		"ab/\xff/ ": {"ab", "ab/\xff", "ab/\xff/ "},
	} {
		require.Equal(t, want, slices.Collect(key.Prefixes()))
		require.Equal(t, string(want[0]), key.Tenant())
	}
	for range lease.Key("a/b").Prefixes() {
		break // stopping early is allowed
	}
}

// TestKeysNamedTogetherAreASetOfOneTenant: in whatever order and however often they are
// named they are the same; what cannot be named together says why.
func TestKeysNamedTogetherAreASetOfOneTenant(t *testing.T) {
	many := func(n int) (keys []string) {
		for i := range n {
			keys = append(keys, "t/"+string(rune('a'+i)))
		}
		return keys
	}
	for _, good := range []struct {
		named []string
		want  []lease.Key
	}{
		{[]string{"t"}, []lease.Key{"t"}},
		{[]string{"t/b", "t/a"}, []lease.Key{"t/a", "t/b"}},
		{[]string{"t/a", "t/a"}, []lease.Key{"t/a"}},
		{[]string{"t/a/b", "t/c", "t/a"}, []lease.Key{"t/a", "t/a/b", "t/c"}},
		{append(many(lease.MaxKeys), "t/a"), []lease.Key{"t/a", "t/b", "t/c", "t/d", "t/e", "t/f", "t/g", "t/h"}},
	} {
		keys, err := lease.ParseKeys(good.named...)
		require.NoError(t, err)
		require.Equal(t, good.want, keys)
		r := ask("a", 1, start, 0, keys...)
		require.NoError(t, r.Validate())
	}
	for _, bad := range []struct {
		named []string
		says  string
	}{
		{nil, "there is none; name 1 to 8"},
		{[]string{"a//b"}, "bad key: segment 2 of \"a//b\" is empty"},
		{[]string{"t", ""}, "bad key: key 2 of 2: it is empty"},
		{[]string{"t/a", "t/b", "u/a"}, `"t/a" and "u/a" are of two tenants; name keys of one, whose first segments are the same`},
		{many(lease.MaxKeys + 1), "there are 9 keys; name 1 to 8"},
	} {
		keys, err := lease.ParseKeys(bad.named...)
		require.ErrorIs(t, err, lease.ErrBadKey)
		require.ErrorContains(t, err, bad.says)
		require.Nil(t, keys)
	}
}
