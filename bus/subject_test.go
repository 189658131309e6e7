package bus

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"ration/lease"
)

// awkward are tenants that a plainer encoding would break or fold together.
var awkward = []string{
	"acme", "Acme", "a", "_", "__", "_YQ", "_YWNtZQ", "a_2E", "a.b", "a b", "a\r\nb", "*", ">", "a.*", "a.>", "\x00", "a\x00",
	"\xff", "\xff\xfe", "a\xffb", "é", "e\u0301", "-", "--", "$SRV", "a=b", "a+b", "a%20b", "テナント", "_INBOX", " ",
	strings.Repeat("x", lease.MaxKeyLen), strings.Repeat("\xff", lease.MaxKeyLen), strings.Repeat("*", lease.MaxKeyLen),
}

// Tenants that look alike have tokens that are not.
func TestTokensKeepTenantsApart(t *testing.T) {
	seen := map[string]string{}
	for _, tenant := range awkward {
		token := Token(tenant)
		require.True(t, plain(token), "%q became %q", tenant, token)
		require.NotContains(t, seen, token, "%q and %q share a token", tenant, seen[token])
		seen[token] = tenant
	}
}

func FuzzToken(f *testing.F) {
	for i, tenant := range awkward {
		f.Add(tenant, awkward[(i+1)%len(awkward)])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		ta, tb := Token(a), Token(b)
		require.True(t, ta != "" && plain(ta), "%q became %q", a, ta)
		require.Equal(t, a == b, ta == tb, "%q became %q, %q became %q", a, ta, b, tb)
		require.Equal(t, a == b, Token(ta) == Token(tb), "a token is a tenant too")
	})
}

// TestPartitionIsThatOfTheServer asks a NATS server to place the same tokens.
func TestPartitionIsThatOfTheServer(t *testing.T) {
	url := configured(t, `mappings = { "place.*": "at.{{partition(16,1)}}.{{wildcard(1)}}" }`)
	nc := dialed(t, url, ConnectConfig{})
	sub, err := nc.SubscribeSync("at.>")
	require.NoError(t, err)
	used := map[int]bool{}
	for i := range 300 {
		token := Token(fmt.Sprintf("tenant %d", i))
		require.NoError(t, nc.Publish("place."+token, nil))
		m, err := sub.NextMsgWithContext(bounded(t))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("at.%d.%s", Partition(token, 16), token), m.Subject)
		used[Partition(token, 16)] = true
	}
	require.Len(t, used, 16)
}

func TestRecallSubjectsKeepHoldersApart(t *testing.T) {
	seen := map[string]lease.Holder{}
	for _, h := range []lease.Holder{
		{Name: "a", Incarnation: 1}, {Name: "a", Incarnation: 0x11}, {Name: "a-1", Incarnation: 1}, {Name: "a-1-1", Incarnation: 1},
		{Name: "a.1", Incarnation: 1}, {Name: "a", Incarnation: 0}, {Name: "*", Incarnation: 1}, {Name: ">", Incarnation: 1},
	} {
		subject := recallSubject("c", h)
		require.NotContains(t, seen, subject)
		require.Equal(t, 4, strings.Count(subject, "."), subject)
		seen[subject] = h
	}
}

func TestCellsAndPartitionsAreChecked(t *testing.T) {
	for _, cell := range []string{"a.b", "*", ">", "a b", "é", "$x", strings.Repeat("x", 65)} {
		require.ErrorContains(t, ClientConfig{Cell: cell}.Validate(), "cell", cell)
		require.ErrorContains(t, ServeConfig{Lessor: granting(), Cell: cell}.Validate(), "cell", cell)
	}
	for _, n := range []int{-1, MaxPartitions + 1} {
		require.ErrorContains(t, ClientConfig{Partitions: n}.Validate(), "partitions")
		require.ErrorContains(t, ServeConfig{Lessor: granting(), Partitions: n}.Validate(), "partitions")
	}
	require.ErrorContains(t, ServeConfig{}.Validate(), "no lessor")
	require.NoError(t, ClientConfig{}.Validate())
	require.NoError(t, ServeConfig{Lessor: granting(), Cell: "prod-1_a", Partitions: 64}.Validate())
}

func TestClientNeedsAConnectionThatSendsNothingLate(t *testing.T) {
	e := embed(t)
	nc, err := nats.Connect(e.URL())
	require.NoError(t, err)
	defer nc.Close()
	require.PanicsWithValue(t, "bus: NewClient needs a connection of Connect, which sends nothing late",
		func() { NewClient(nc, ClientConfig{}) })
}
