package bus

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPolicyIsReadAsItIsWritten, and no revision is asked for that others cannot follow.
func TestPolicyIsReadAsItIsWritten(t *testing.T) {
	for _, p := range []Policy{{File: "a.yaml", Text: "limits: \"ä\x01\"\r\n"}, {Text: "x", Least: 7}, {Text: "x", Least: mostLeast}} {
		body, err := encodePolicy(p)
		require.NoError(t, err)
		got, err := decodePolicy(body)
		require.NoError(t, err)
		require.Equal(t, p, got)
	}
	for body, want := range map[string]string{
		`{"v":1,"text":"x","least":9007199254740991}`: "above 4503599627370495",
		`{"v":1,"text":"x","least":-1}`:               "least",
		`{"v":1,"file":"x"}`:                          "text",
		`{"text":"x","v":2}`:                          "format",
	} {
		_, err := decodePolicy([]byte(body))
		require.ErrorContains(t, err, want, body)
	}
}
