package bus

import (
	"encoding/json"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"ration/lease"
)

// listening has ears that tell what known has.
func listening(t *testing.T, url string, cfg EarsConfig, known *atomic.Pointer[Known]) *Ears {
	t.Helper()
	cfg.Known = func() Known { return *known.Load() }
	cfg.Every = 5 * time.Millisecond
	e, err := Listen(dialed(t, url, ConnectConfig{}), cfg)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	return e
}

// others waits until what is heard of others is so.
func others(t *testing.T, e *Ears, what string, so func([]Other) bool) {
	t.Helper()
	require.Eventually(t, func() bool { return so(e.Hear(lease.Epoch{}).Others) }, time.Minute, time.Millisecond, what)
}

// TestOthersAreHeardAndWhatTheyClaim: in the partition that they say it of, under the id
// that they have in all.
func TestOthersAreHeardAndWhatTheyClaim(t *testing.T) {
	server := embed(t)
	var mine, its atomic.Pointer[Known]
	mine.Store(&Known{Number: 3, Mirror: 9, Leads: true})
	its.Store(&Known{Number: 2, Mirror: 9})
	a := listening(t, server.URL(), EarsConfig{Name: "a", Partition: 1, ID: "ida"}, &mine)
	b := listening(t, server.URL(), EarsConfig{Name: "b", Partition: 1, ID: "idb"}, &its)
	elsewhere := listening(t, server.URL(), EarsConfig{Name: "a", Partition: 0, ID: "ida"}, &mine)

	others(t, b, "a is heard", func(o []Other) bool {
		return slices.Equal(o, []Other{{ID: "ida", Name: "a", Known: Known{Number: 3, Mirror: 9, Leads: true}}})
	})
	its.Store(&Known{Number: 2, Mirror: 9, Claims: true})
	others(t, a, "the claim is heard", func(o []Other) bool { return len(o) == 1 && o[0].ID == "idb" && o[0].Claims })
	its.Store(&Known{Number: 4, Mirror: 9, Leads: true})
	others(t, a, "it leads", func(o []Other) bool { return len(o) == 1 && o[0].Leads && !o[0].Claims })
	require.Empty(t, elsewhere.Hear(lease.Epoch{}).Others, "nobody else listens in that partition")
}

// TestWhatOthersGoByIsToldAtOnce: a claim, and the end of a leadership, wait for no next
// time to say hello.
func TestWhatOthersGoByIsToldAtOnce(t *testing.T) {
	server := embed(t)
	nc := dialed(t, server.URL(), ConnectConfig{})
	said := make(chan *nats.Msg, 1000)
	_, err := nc.ChanSubscribe(helloSubject(DefaultCell, 0), said)
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	var known atomic.Pointer[Known]
	known.Store(&Known{})
	listening(t, server.URL(), EarsConfig{Name: "a", ID: "ida"}, &known)
	for round := range 20 { // 500 ms lie between two that nothing asks for
		known.Store(&Known{Number: uint64(round + 1), Leads: round%2 == 0, Claims: round%3 == 0})
		for want := *known.Load(); ; {
			var h helloMessage
			require.NoError(t, json.Unmarshal((<-said).Data, &h))
			require.Equal(t, "ida", h.ID)
			if h.Number == want.Number {
				require.Equal(t, want, Known{h.Number, h.Mirror, h.Leads, h.Claims})
				break
			}
		}
	}
}

// TestHelloOfAnOlderReleaseClaimsNothing: it has no such field.
func TestHelloOfAnOlderReleaseClaimsNothing(t *testing.T) {
	server := embed(t)
	var known atomic.Pointer[Known]
	known.Store(&Known{})
	e := listening(t, server.URL(), EarsConfig{Name: "a"}, &known)
	nc := dialed(t, server.URL(), ConnectConfig{})
	others(t, e, "it is heard", func(o []Other) bool {
		require.NoError(t, nc.Publish(helloSubject(DefaultCell, 0), []byte(`{"v":1,"id":"old","name":"o","epoch":"3","mirror":"7","leads":true}`)))
		return slices.Equal(o, []Other{{ID: "old", Name: "o", Known: Known{Number: 3, Mirror: 7, Leads: true}}})
	})
}

// TestWhoListensWithoutAnAnswerIsNoSilence: NATS answers for nobody where a leader stands
// still, and its subscription is there.
func TestWhoListensWithoutAnAnswerIsNoSilence(t *testing.T) {
	server := embed(t)
	nc := dialed(t, server.URL(), ConnectConfig{})
	still, err := nc.SubscribeSync(pingSubject(DefaultCell, 0))
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	var known atomic.Pointer[Known]
	known.Store(&Known{})
	e := listening(t, server.URL(), EarsConfig{Name: "a"}, &known)
	hears := func(what string, so func(Heard) bool) {
		t.Helper()
		require.Eventually(t, func() bool { return so(e.Hear(lease.Epoch{})) }, time.Minute, time.Millisecond, what)
	}
	for range 20 { // it was asked, and more than once
		_, err := still.NextMsg(time.Minute)
		require.NoError(t, err)
	}
	hears("it can be asked", func(h Heard) bool { return h.Connected })
	h := e.Hear(lease.Epoch{})
	require.False(t, h.Silent)
	require.False(t, h.Served)
	require.NoError(t, still.Unsubscribe())
	hears("nobody listens", func(h Heard) bool { return h.Connected && h.Silent })
}
