package bus

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

// FuzzReadersAgree holds the readers written here against encoding/json: what they
// accept it accepts, and reads as the same; an excess they may have is only to
// refuse more.
func FuzzReadersAgree(f *testing.F) {
	f.Add([]byte(sound))
	f.Add([]byte(` {"new":[{"a":"]}\"","b":[null,-1.5e9,true]}], "v" : 1 ,"\u0069d":"\u0061.1\/1","keys":["\ud83d\ude00\n\t\"",{"key64":"/w=="}],"want":{"tokens":1},"need":{},"sent":"1h","patience":"2m"} `))
	for seed := range uint64(6) {
		d := draw{rand.New(rand.NewPCG(seed, 4))}
		f.Add(first(encodeRequest(d.request())))
		if messages, err := encodeReport(d.report()); err == nil {
			f.Add(messages[0])
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if r, err := decodeRequest(body); err == nil {
			require.Equal(t, r, other{t}.request(body), "%s", body)
		}
		if r, err := decodeReport(body); err == nil {
			require.Equal(t, normal(r), normal(other{t}.report(body)), "%s", body)
		}
	})
}

// FuzzStringsAgree is the same of strings alone, which can be written in more ways
// than anything else. Half a surrogate pair is refused here.
func FuzzStringsAgree(f *testing.F) {
	for _, s := range []string{`"a"`, `"\u00e9\ud83d\ude00"`, `"\ud83d"`, `"\ude00\ud83d"`, `"\"\\\/\b\f\n\r\t"`, `"\u0000"`, `"\ud83d\u0041"`, `""`} {
		f.Add(s)
	}
	lone := regexp.MustCompile(`(?i)\\ud[89a-f]`)
	f.Fuzz(func(t *testing.T, raw string) {
		var want string
		if raw == "" || raw[0] != '"' || !utf8.ValidString(raw) || json.Unmarshal([]byte(raw), &want) != nil {
			return
		}
		end := value([]byte(raw), 0)
		got, err := unquote([]byte(raw)[:end])
		if err != nil {
			require.Regexp(t, lone, raw)
			return
		}
		require.Equal(t, want, got)
	})
}

// other reads messages by means of encoding/json and math/big alone.
type other struct{ t *testing.T }

func (o other) fields(raw json.RawMessage) (m map[string]json.RawMessage) {
	o.t.Helper()
	require.NoError(o.t, json.Unmarshal(raw, &m), "%s", raw)
	return m
}

func (o other) list(raw json.RawMessage) (l []json.RawMessage) {
	o.t.Helper()
	if raw != nil {
		require.NoError(o.t, json.Unmarshal(raw, &l), "%s", raw)
	}
	return l
}

func (o other) text(raw json.RawMessage) (s string) {
	o.t.Helper()
	require.NoError(o.t, json.Unmarshal(raw, &s), "%s", raw)
	return s
}

func (o other) flag(raw json.RawMessage) (b bool) {
	o.t.Helper()
	if raw != nil {
		require.NoError(o.t, json.Unmarshal(raw, &b), "%s", raw)
	}
	return b
}

func (o other) number(raw json.RawMessage) int64 {
	o.t.Helper()
	if raw == nil {
		return 0
	}
	n, ok := new(big.Rat).SetString(string(raw))
	require.True(o.t, ok && n.IsInt() && n.Num().IsInt64() && n.Sign() >= 0, "%s", raw)
	return n.Num().Int64()
}

func (o other) duration(raw json.RawMessage) time.Duration {
	o.t.Helper()
	m := regexp.MustCompile(`^([0-9]+)(ns|us|ms|s|m|h)$`).FindStringSubmatch(o.text(raw))
	require.NotNil(o.t, m, "%s", raw)
	n, _ := new(big.Int).SetString(m[1], 10)
	n.Mul(n, big.NewInt(map[string]int64{"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}[m[2]]))
	require.True(o.t, n.IsInt64(), "%s", raw)
	return time.Duration(n.Int64())
}

var holderRE = regexp.MustCompile(`(?s)^(.+)\.(0|[1-9a-f][0-9a-f]*)$`)

func (o other) holder(s string) lease.Holder {
	o.t.Helper()
	m := holderRE.FindStringSubmatch(s)
	require.NotNil(o.t, m, "%q", s)
	n, err := strconv.ParseUint(m[2], 16, 64)
	require.NoError(o.t, err)
	return lease.Holder{Name: m[1], Incarnation: n}
}

func (o other) id(raw json.RawMessage) lease.ID {
	o.t.Helper()
	m := regexp.MustCompile(`(?s)^(.*)/(0|[1-9][0-9]*)$`).FindStringSubmatch(o.text(raw))
	require.NotNil(o.t, m, "%s", raw)
	n, err := strconv.ParseUint(m[2], 10, 64)
	require.NoError(o.t, err)
	return lease.ID{Holder: o.holder(m[1]), Seq: n}
}

func (o other) keys(raw json.RawMessage) (keys []lease.Key) {
	o.t.Helper()
	for _, k := range o.list(raw) {
		if k[0] == '{' {
			b, err := base64.StdEncoding.DecodeString(o.text(o.fields(k)["key64"]))
			require.NoError(o.t, err)
			keys = append(keys, lease.Key(b))
			continue
		}
		keys = append(keys, lease.Key(o.text(k)))
	}
	return keys
}

func (o other) amount(raw json.RawMessage) lease.Amount {
	m := o.fields(raw)
	return lease.Amount{Tokens: o.number(m["tokens"]), Slots: o.number(m["slots"]), Units: o.units(m["units"])}
}

func (o other) units(raw json.RawMessage) (units lease.Units) {
	o.t.Helper()
	if raw == nil {
		return nil
	}
	m := o.fields(raw)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if n := o.number(m[name]); n > 0 {
			units = append(units, lease.UnitAmount{Unit: name, N: n})
		}
	}
	return units
}

func (o other) request(body []byte) lease.Request {
	o.t.Helper()
	m := o.fields(body)
	require.EqualValues(o.t, Format, o.number(m["v"]))
	class := ""
	if m["class"] != nil {
		class = o.text(m["class"])
	}
	return lease.Request{
		Class: class, ID: o.id(m["id"]), Keys: o.keys(m["keys"]), Want: o.amount(m["want"]), Need: o.amount(m["need"]),
		Sent: o.duration(m["sent"]), Patience: o.duration(m["patience"]),
	}
}

func (o other) report(body []byte) lease.Report {
	o.t.Helper()
	m := o.fields(body)
	require.EqualValues(o.t, Format, o.number(m["v"]))
	r := lease.Report{
		Holder: o.holder(o.text(m["holder"])), Sent: o.duration(m["sent"]), Heartbeat: o.flag(m["heartbeat"]), Goodbye: o.flag(m["goodbye"]),
	}
	for _, raw := range o.list(m["counts"]) {
		c := o.fields(raw)
		count := lease.Count{
			ID: o.id(c["id"]), Keys: o.keys(c["keys"]),
			Returned: o.number(c["returned"]), Freed: o.number(c["freed"]), Cut: o.number(c["cut"]),
			ReturnedUnits: o.units(c["returned_units"]), Over: o.number(c["over"]), OverUnits: o.units(c["over_units"]),
		}
		for _, raw := range o.list(c["points"]) {
			p := o.fields(raw)
			count.Points = append(count.Points, lease.Point{Count: o.number(p["count"]), Age: o.duration(p["age"]), Units: o.units(p["units"])})
		}
		r.Counts = append(r.Counts, count)
	}
	for _, raw := range o.list(m["given_up"]) {
		g := o.fields(raw)
		r.GivenUp = append(r.GivenUp, lease.GivenUp{ID: o.id(g["id"]), Keys: o.keys(g["keys"])})
	}
	return r
}
