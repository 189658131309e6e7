package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/lease"
)

// divided is a site of 4 partitions that leads none; others tell what they are asked.
func divided(ask func(ctx context.Context, n int, key lease.Key) ([]byte, error)) *site {
	s := (&site{name: "me", cell: "c", state: "redis", standsBy: true, policy: lease.Demo(), connected: func() bool { return true }}).divide(4)
	s.ask = ask
	return s
}

// told is what the leader of a partition elsewhere tells.
func told(t *testing.T, n int, leader string, keys ...keyState) []byte {
	t.Helper()
	d := newDocument(lease.Status{Leases: 1, Waiting: 2, Held: lease.Amount{Tokens: 3, Units: lease.Units{{Unit: "v", N: 4}}}, More: 5})
	d.Leader, d.Cell, d.Divided, d.Keys = leader, "c", 4, keys
	d.Partitions = []partition{{N: n, Leader: leader, Epoch: uint64(10 + n)}}
	body, err := json.Marshal(d)
	require.NoError(t, err)
	return body
}

// TestStatusOfACellIsGatheredFromItsLeaders: a partition without one is named, and so is
// one whose leader does not answer.
func TestStatusOfACellIsGatheredFromItsLeaders(t *testing.T) {
	s := divided(func(ctx context.Context, n int, key lease.Key) ([]byte, error) {
		switch n {
		case 0:
			return told(t, 0, "a", keyState{Key: "y"}, keyState{Key: "z"}), nil
		case 1:
			return nil, fmt.Errorf("%w: nobody serves it", lease.ErrNoCoordinator)
		case 2:
			<-ctx.Done()
			return nil, fmt.Errorf("waiting: %w", ctx.Err())
		}
		return told(t, 3, "b", keyState{Key: "x"}), nil
	})
	answer, err := s.document(t.Context(), "")
	require.NoError(t, err)
	d := answer.(*document)
	require.Equal(t, []partition{
		{N: 0, Leader: "a", Epoch: 10}, {N: 1, Problem: "nobody leads it"}, {N: 2, Problem: "its leader does not answer"}, {N: 3, Leader: "b", Epoch: 13},
	}, d.Partitions)
	require.Equal(t, 4, d.Divided)
	require.Equal(t, "a", d.Leader)
	require.Equal(t, 2, d.Leases)
	require.Equal(t, 4, d.Waiting)
	require.Equal(t, amount{Tokens: 6, Units: map[string]int64{"v": 8}}, d.Held)
	require.Equal(t, 10, d.More)
	var names []string
	for i := range d.Keys {
		names = append(names, d.Keys[i].name())
	}
	require.Equal(t, []string{"x", "y", "z"}, names)
	require.Equal(t, []string{
		"cell c has 4 partitions", "a leads 0", "1: nobody leads it", "2: its leader does not answer", "b leads 3",
	}, leadership(d))
}

// TestStatusOfAKeyAsksItsPartitionAlone: and an error says why nothing is known of it.
func TestStatusOfAKeyAsksItsPartitionAlone(t *testing.T) {
	key := lease.Key("acme/search")
	of := bus.Partition(bus.Token("acme"), 4)
	for name, c := range map[string]struct {
		body    []byte
		err     error
		problem string
	}{
		"told":              {body: told(t, of, "a")},
		"nobody":            {err: lease.ErrNoCoordinator, problem: "nobody leads it"},
		"it hands over":     {err: lease.ErrStopped, problem: "nobody leads it"},
		"it fails":          {err: fmt.Errorf("%w: no room", lease.ErrInternal), problem: lease.ErrInternal.Error() + ": no room"},
		"what is no status": {body: []byte("[]"), problem: "json: cannot unmarshal array into Go value of type main.document"},
		"another format":    {body: []byte(`{"v":2}`), problem: lease.ErrFormat.Error() + ": its leader tells its status in format 2, this side speaks 1"},
	} {
		s := divided(func(_ context.Context, n int, k lease.Key) ([]byte, error) {
			require.Equal(t, of, n, name)
			require.Equal(t, key, k, name)
			return c.body, c.err
		})
		answer, err := s.document(t.Context(), key)
		require.NoError(t, err, name)
		d := answer.(*document)
		require.Len(t, d.Partitions, 1, name)
		require.Equal(t, of, d.Partitions[0].N, name)
		require.Equal(t, c.problem, d.Partitions[0].Problem, name)
		lacking := (&statusCommand{Key: string(key)}).lacking(d)
		if c.problem == "" {
			require.NoError(t, lacking, name)
			continue
		}
		require.ErrorIs(t, lacking, lease.ErrNoCoordinator, name)
		require.ErrorContains(t, lacking, fmt.Sprintf("acme/search is of partition %d of 4 of cell c: ", of), name)
	}
}

// TestWhoIsAloneWithoutALeaderTellsNoStatus: then another one is asked, or nobody.
func TestWhoIsAloneWithoutALeaderTellsNoStatus(t *testing.T) {
	_, err := divided(nil).document(t.Context(), "")
	require.ErrorIs(t, err, lease.ErrStopped)
	_, err = divided(func(context.Context, int, lease.Key) ([]byte, error) { return nil, errors.New("no") }).document(t.Context(), "")
	require.ErrorIs(t, err, lease.ErrStopped)
}

func TestReadinessNamesThePartition(t *testing.T) {
	s := divided(nil)
	s.standsBy = false
	require.EqualError(t, s.ready(), "partition 0: not leading")
}

func TestNumbersOfPartitionsAreShort(t *testing.T) {
	for want, numbers := range map[string][]int{
		"0": {0}, "0-1": {0, 1}, "0, 2-4, 7": {0, 2, 3, 4, 7}, "1, 3, 5-6": {1, 3, 5, 6},
	} {
		require.Equal(t, want, ranges(numbers))
	}
}
