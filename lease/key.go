package lease

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// MaxKeyLen is the longest key accepted, in bytes.
const MaxKeyLen = 1024

// Key names what is limited: a path such as "acme/prod/search". Every prefix
// of it that the policy names is limited too. A valid key is any bytes, 1 to
// MaxKeyLen of them, without an empty segment between slashes; two keys are
// the same only if their bytes are.
type Key string

// ParseKey checks s and gives it as a Key, or an error wrapping ErrBadKey that
// says what to change.
func ParseKey(s string) (Key, error) {
	switch {
	case s == "":
		return "", fmt.Errorf("%w: it is empty; give at least one segment", ErrBadKey)
	case len(s) > MaxKeyLen:
		return "", fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrBadKey, len(s), MaxKeyLen)
	}
	n := 1
	for i := range len(s) {
		if s[i] != '/' {
			continue
		}
		if i == 0 || s[i-1] == '/' {
			return "", emptySegment(s, n)
		}
		n++
	}
	if s[len(s)-1] == '/' {
		return "", emptySegment(s, n)
	}
	return Key(s), nil
}

// ParseKeys checks keys that are named together and gives them in order, each once.
// However they are named, it is the same request: to take from all prefixes of all of
// them at once. The error wraps ErrBadKey.
func ParseKeys(texts ...string) ([]Key, error) {
	keys := make([]Key, 0, len(texts))
	for i, s := range texts {
		k, err := ParseKey(s)
		if err != nil && len(texts) > 1 {
			fault := strings.TrimPrefix(err.Error(), ErrBadKey.Error()+": ")
			err = fmt.Errorf("%w: key %d of %d: %s", ErrBadKey, i+1, len(texts), fault)
		}
		if err != nil {
			return nil, err
		}
		if i > 0 && keys[0].Tenant() != k.Tenant() {
			return nil, fmt.Errorf("%w: %.80q and %.80q are of two tenants; name keys of one, whose first segments are the same", ErrBadKey, keys[0], k)
		}
		keys = append(keys, k)
	}
	slices.Sort(keys)
	switch keys = slices.Compact(keys); {
	case len(keys) == 0:
		return nil, fmt.Errorf("%w: there is none; name 1 to %d", ErrBadKey, MaxKeys)
	case len(keys) > MaxKeys:
		return nil, fmt.Errorf("%w: there are %d keys; name 1 to %d", ErrBadKey, len(keys), MaxKeys)
	}
	return keys, nil
}

func emptySegment(s string, n int) error {
	return fmt.Errorf("%w: segment %d of %.80q is empty; remove the extra slash", ErrBadKey, n, s)
}

// Tenant is the first segment: whose key it is. All keys of one message are of
// one tenant.
func (k Key) Tenant() string {
	tenant, _, _ := strings.Cut(string(k), "/")
	return tenant
}

// Prefixes yields "a", "a/b" and "a/b/c" of "a/b/c".
func (k Key) Prefixes() iter.Seq[Key] {
	return func(yield func(Key) bool) {
		for i := 0; i < len(k); i++ {
			if k[i] == '/' && !yield(k[:i]) {
				return
			}
		}
		yield(k)
	}
}
