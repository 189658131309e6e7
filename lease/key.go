package lease

import (
	"fmt"
	"iter"
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
