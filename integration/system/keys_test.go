package system

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"ration"
	"ration/bus"
	"ration/integration/harness"
	"ration/lease"
)

// odd are keys that a plainer encoding would break or fold together: all valid, and
// each another one. None is a prefix of another.
var odd = []string{
	" ", "  ", "x ", " x", "x\t", "x\r\n", "x\n", "*", ">", "x.*", "x.>", "*.x", ".", "..", "x.y", "x..y", "x:y", "x,y", "x;y",
	"\x00", "x\x00", "\x00x", "\xff", "x\xff", "x\xfe", "\xc3", "\xc3\x28", "\xed\xa0\x80", "�", "x�",
	"é", "e\u0301", "É", "ｅ", "ß", "ss", "ﬁ", "fi", "\u200b", "x\u200b", "x\u00a0", "\ufeffx", "😀", "\u202ex",
	"a:b/c", "a/b:c", "a:b:c", "b/a:c", "key64", `{"key64":"eA=="}`, "eA==", "_eA", "__eA", "_", "-", "--help", "$x", "$SRV", "_INBOX",
	"'", `"`, `\`, `\\`, `\x20`, `x\`, `\n`, "%20", "x%00", "{x}", "{{x}}", "~", "null", "true", "0", "00", "1e3", "X", "x",
	strings.Repeat("k", 1024), strings.Repeat("k", 1023), strings.Repeat("\xff", 1024), strings.Repeat("*", 1023),
}

// spendable is how much a key of keysPolicy has.
const spendable = 3

const keysPolicy = "limits:\n  - key: \"{any}\"\n    rules: [3/1h]\n"

// keysSite is a coordinator process, a client, and all subjects on which anything
// was said.
type keysSite struct {
	t        *testing.T
	p        *places
	c        *harness.Coordinator
	client   *ration.Client
	asked    *bus.Client
	mu       sync.Mutex
	subjects map[string]bool
}

func newKeysSite(t *testing.T) *keysSite {
	p := newPlaces(t)
	k := &keysSite{t: t, p: p, subjects: map[string]bool{}}
	k.c = p.h.Coordinator(harness.CoordinatorConfig{Policy: p.h.Policy(keysPolicy)})
	nc, err := bus.Connect(k.c.NATS, bus.ConnectConfig{Wait: harness.Patience})
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	_, err = nc.Subscribe(">", func(m *nats.Msg) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.subjects[m.Subject] = true
	})
	require.NoError(t, err)
	require.NoError(t, nc.FlushTimeout(harness.Patience))
	k.asked = bus.NewClient(nc, bus.ClientConfig{})
	k.client, err = ration.Connect(k.c.NATS, ration.WithConnectWait(harness.Patience), ration.WithName("keys"))
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := soon(harness.Patience)
		defer cancel()
		require.NoError(t, k.client.Close(ctx))
	})
	return k
}

// spend spends one token of a key, and gives the refusal if there is none left.
func (k *keysSite) spend(key string) error {
	l, err := k.client.Limiter(key)
	if err != nil {
		return err
	}
	ctx, cancel := soon(harness.Patience) // an hour is known to be more
	defer cancel()
	return l.Wait(ctx)
}

// shown is a key as the status tells it.
type shown struct {
	Key     *string `json:"key"`
	Key64   []byte  `json:"key64"`
	Windows []struct {
		Free, Held, Spent int64
	} `json:"windows"`
}

func (s shown) name() string {
	if s.Key != nil {
		return *s.Key
	}
	return string(s.Key64)
}

func (k *keysSite) status(key string) map[string]shown {
	k.t.Helper()
	ctx, cancel := soon(harness.Patience)
	defer cancel()
	body, err := k.asked.Status(ctx, lease.Key(key))
	require.NoError(k.t, err)
	return read(k.t, body)
}

func read(t *testing.T, body []byte) map[string]shown {
	t.Helper()
	var all struct {
		Keys []shown `json:"keys"`
		More int     `json:"more"`
	}
	require.NoError(t, json.Unmarshal(body, &all), "%s", body)
	byName := map[string]shown{}
	for _, s := range all.Keys {
		require.NotContains(t, byName, s.name(), "%q is told twice", s.name())
		require.False(t, s.Key != nil && s.Key64 != nil)
		byName[s.name()] = s
	}
	return byName
}

// TestOddKeysAreValidAndKeptApart spends all that each key has. Were two of them one,
// the second would find nothing; were a limit not kept, one more would be granted.
func TestOddKeysAreValidAndKeptApart(t *testing.T) {
	t.Parallel()
	k := newKeysSite(t)
	for _, key := range odd {
		for n := range spendable {
			require.NoError(t, k.spend(key), "%q, spend %d", key, n+1)
		}
	}
	for _, key := range odd {
		require.ErrorIs(t, k.spend(key), lease.ErrTooLate, "%q", key)
	}

	faces := map[string]string{}
	for _, key := range odd {
		tenant, _, _ := strings.Cut(key, "/")
		k.p.h.Until(fmt.Sprintf("the spends of %q", key), func() error {
			all := k.status(key)
			if len(all) != 1 || len(all[tenant].Windows) != 1 || all[tenant].Windows[0].Spent != spendable {
				return fmt.Errorf("the status is %+v", all)
			}
			return nil
		})
		k.command(key, tenant, faces)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	require.Greater(t, len(k.subjects), len(odd), "the subjects were not heard")
	for subject := range k.subjects {
		require.Regexp(t, `^[A-Za-z0-9_.$-]+$`, subject)
		require.NotContains(t, subject, "..")
	}
	t.Logf("%d keys on %d subjects", len(odd), len(k.subjects))
}

// command asks the command for the status of a key, for people and as JSON. An
// argument cannot have a NUL byte.
func (k *keysSite) command(key, tenant string, faces map[string]string) {
	t := k.t
	t.Helper()
	args := []string{"status", "--nats", k.c.NATS, "--connect-wait", "1m"}
	path := k.p.h.Bin("coordinator").Path("coordinator")
	if strings.Contains(key, "\x00") {
		_, err := harness.Start(harness.Command{Path: path, Args: append(args, "--", key)})
		require.True(t, errors.Is(err, syscall.EINVAL), "%v", err)
		return
	}
	run := func(more ...string) string {
		c, err := harness.Start(harness.Command{Path: path, Args: append(append(args[:len(args):len(args)], more...), "--", key)})
		require.NoError(t, err)
		defer c.Close()
		require.Zero(t, k.p.h.Wait(c), "%q: %s", key, c.Stderr())
		return c.Stdout()
	}
	all := read(t, []byte(run("--json")))
	require.Len(t, all, 1)
	require.Contains(t, all, tenant)
	if len(tenant) > 80 {
		return // it is cut to the screen
	}
	before, _, found := strings.Cut(run(), "\n  3/1h ")
	face := before[strings.LastIndexByte(before, '\n')+1:]
	require.True(t, found && utf8.ValidString(face) && face == strings.TrimRight(face, " \t\r"), "%q is shown as %q", key, face)
	require.NotContains(t, faces, face, "%q is shown as is %q", key, faces[face])
	faces[face] = key
}

// TestTwoKeysAreTwoContracts draws two keys at a time from what breaks encodings.
func TestTwoKeysAreTwoContracts(t *testing.T) {
	t.Parallel()
	k := newKeysSite(t)
	piece := rapid.OneOf(rapid.SampledFrom(odd[:44]), rapid.StringN(1, 3, 8), rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 3), func(b []byte) string { return string(b) }))
	draw := func(t *rapid.T, label string, n int) string {
		text := strings.Join(rapid.SliceOfN(piece, 1, 4).Draw(t, label), "")
		return fmt.Sprint(n) + strings.ReplaceAll(text, "/", "|")
	}
	n := 0
	var spent []string
	rapid.Check(t, func(t *rapid.T) {
		n++
		a, b := draw(t, "a", n), draw(t, "b", n)
		if a == b {
			t.Skip("one key")
		}
		for _, key := range []string{a, b} {
			for range spendable {
				require.NoError(t, k.spend(key), "%q of %q and %q", key, a, b)
			}
		}
		spent = append(spent, a, b)
	})
	for _, key := range spent { // a refusal waits until the spends are told, so all of them together
		require.ErrorIs(t, k.spend(key), lease.ErrTooLate, "%q", key)
	}
	t.Logf("%d pairs", n)
}
