package bus

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkWire is what a request and its grant cost in writing and reading,
// both ends together.
func BenchmarkWire(b *testing.B) {
	r := request(7, "acme/prod/search")
	b.ReportAllocs()
	for b.Loop() {
		body, err := encodeRequest(r)
		require.NoError(b, err)
		got, err := decodeRequest(body)
		require.NoError(b, err)
		body, err = encodeAnswer(grantOf(got))
		require.NoError(b, err)
		_, err = decodeAnswer(body)
		require.NoError(b, err)
	}
}

// BenchmarkRoundTrip is one acquire over loopback TCP.
func BenchmarkRoundTrip(b *testing.B) {
	e := embed(b)
	serve(b, dialed(b, e.URL(), ConnectConfig{}), ServeConfig{Lessor: granting()})
	c := NewClient(dialed(b, e.URL(), ConnectConfig{}), ClientConfig{})
	ctx := bounded(b)
	for seq := uint64(0); b.Loop(); seq++ {
		_, err := c.Acquire(ctx, request(seq, "acme"))
		require.NoError(b, err)
	}
}
