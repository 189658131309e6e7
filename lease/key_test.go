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
