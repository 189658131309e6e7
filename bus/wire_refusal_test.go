package bus

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ration/lease"
)

const sound = `{"v":1,"id":"a.1/1","keys":["k"],"want":{"tokens":1},"need":{"tokens":1},"sent":"0s","patience":"0s"}`

// No number mints tokens, and the field that is wrong is named.
func TestRequestNamesTheFieldThatIsWrong(t *testing.T) {
	_, err := decodeRequest([]byte(sound))
	require.NoError(t, err)
	for _, c := range []struct{ replace, with, code, says string }{
		{`{"tokens":1},"need"`, `{"tokens":-1},"need"`, "bad_request", "field want.tokens: -1 is not a whole number"},
		{`{"tokens":1},"need"`, `{"tokens":1.5},"need"`, "bad_request", "field want.tokens: 1.5 is not"},
		{`{"tokens":1},"need"`, `{"tokens":1e3},"need"`, "bad_request", "field want.tokens: 1e3 is not"},
		{`{"tokens":1},"need"`, `{"tokens":9007199254740992},"need"`, "bad_request", "field want.tokens"},
		{`{"tokens":1},"need"`, `{"tokens":"1"},"need"`, "bad_request", "field want.tokens"},
		{`{"tokens":1},"need"`, `{"tokens":null},"need"`, "bad_request", "field want.tokens: null is no value"},
		{`{"tokens":1},"need"`, `{"tokens":NaN},"need"`, "bad_request", "not JSON"},
		{`{"tokens":1},"need"`, `{"tokens":1,"tokens":2},"need"`, "bad_request", "field want.tokens: it is given twice"},
		{`{"tokens":1},"need"`, `7,"need"`, "bad_request", "field want: 7 is not an object"},
		{`{"tokens":1},"need"`, `{"tokens":1,"units":{"tokens":-1}},"need"`, "bad_request", "field want.units.tokens: -1 is not a whole number"},
		{`{"tokens":1},"need"`, `{"tokens":1,"units":{"tokens":null}},"need"`, "bad_request", "field want.units.tokens: null is no value"},
		{`{"tokens":1},"need"`, `{"tokens":1,"units":{"a":1,"a":1}},"need"`, "bad_request", "field want.units.a: it is given twice"},
		{`{"tokens":1},"need"`, `{"tokens":1,"units":{"Tokens":1}},"need"`, "bad_request", `field want.units: the unit "Tokens" does not begin with one of a-z`},
		{`{"tokens":1},"need"`, `{"tokens":1,"units":{"":1}},"need"`, "bad_request", "field want.units: the name of the unit is missing"},
		{`{"tokens":1},"need"`, `{"tokens":1,"units":{"call":1}},"need"`, "bad_request", `field want.units: the unit "call" is what tokens count already`},
		{`{"tokens":1},"need"`, `{"tokens":1,"units":{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}},"need"`, "bad_request", "field want.units: it names 9 units; name at most 8"},
		{`{"tokens":1},"need"`, `{"tokens":1,"units":7},"need"`, "bad_request", "field want.units: 7 is not an object"},
		{`"want":{"tokens":1},`, ``, "bad_request", "field want: it is missing"},
		{`"sent":"0s",`, ``, "bad_request", "field sent: it is missing"},
		{`"0s"}`, `"-1s"}`, "bad_request", "field patience"},
		{`"0s"}`, `"1.5s"}`, "bad_request", "field patience"},
		{`"0s"}`, `"s"}`, "bad_request", "field patience"},
		{`"0s"}`, `"+1s"}`, "bad_request", "field patience"},
		{`"0s"}`, `"1d"}`, "bad_request", "field patience"},
		{`"0s"}`, `"9223372037s"}`, "bad_request", "field patience"},
		{`"0s"}`, `"99999999999999999999ns"}`, "bad_request", "field patience"},
		{`"0s"}`, `5}`, "bad_request", "field patience"},
		{`"a.1/1"`, `"a.1"`, "bad_request", "field id"},
		{`"a.1/1"`, `"a/1"`, "bad_request", "field id"},
		{`"a.1/1"`, `".1/1"`, "bad_request", "field id: the holder has no name"},
		{`"a.1/1"`, `"a.01/1"`, "bad_request", "field id"},
		{`"a.1/1"`, `"a.A/1"`, "bad_request", "field id"},
		{`"a.1/1"`, `"a.1/-1"`, "bad_request", "field id"},
		{`"a.1/1"`, `"a.1/18446744073709551616"`, "bad_request", "field id"},
		{`"a.1/1"`, `1`, "bad_request", "field id: 1 is not a string"},
		{`"a.1/1"`, `"` + strings.Repeat("n", maxNameLen+1) + `.1/1"`, "bad_request", "field id"},
		{`["k"]`, `[]`, "bad_request", "field keys: it is empty"},
		{`["k"]`, `"k"`, "bad_request", "field keys"},
		{`["k"]`, `["k",7]`, "bad_request", "field keys[1]"},
		{`["k"]`, `[null]`, "bad_request", "field keys[0]"},
		{`["k"]`, `["a","a","a","a","a","a","a","a","a"]`, "bad_request", "field keys: it has more than 8 entries"},
		{`["k"]`, `["a//b"]`, "bad_key", "field keys[0]: segment 2"},
		{`["k"]`, `[""]`, "bad_key", "field keys[0]"},
		{`["k"]`, `["\ud800"]`, "bad_request", "surrogate"},
		{`["k"]`, `["\ud800\u0041"]`, "bad_request", "surrogate"},
		{`["k"]`, `["\udc00"]`, "bad_request", "surrogate"},
		{`["k"]`, `[{"key64":"?"}]`, "bad_request", "field keys[0].key64"},
		{`["k"]`, `[{}]`, "bad_request", "field keys[0].key64: it is missing"},
		{`["k"]`, "[\"\xff\"]", "bad_request", "UTF-8"},
		{`"v":1,`, ``, "bad_request", "field v: it is missing"},
		{`"v":1,`, `"v":"1",`, "bad_request", "field v"},
		{`"v":1,`, `"v":1,"v":1,`, "bad_request", "field v: it is given twice"},
		{`"v":1,`, `"v":2,`, "format", "format 2, this side speaks 1"},
		{`"v":1,`, `"v":0,`, "format", "format 0, this side speaks 1"},
		{sound, ``, "bad_request", "not JSON"},
		{sound, `[]`, "bad_request", "not a JSON object"},
		{sound, `null`, "bad_request", "not a JSON object"},
		{sound, sound + sound, "bad_request", "not JSON"},
		{sound, sound + strings.Repeat(" ", MaxMessage), "bad_request", "at most 65536 are allowed"},
	} {
		body := strings.Replace(sound, c.replace, c.with, 1)
		require.NotEqual(t, sound, body)
		_, err := decodeRequest([]byte(body))
		require.ErrorContains(t, err, c.says, "%.200s", body)
		require.Equal(t, c.code, lease.Code(err), "%.200s", body)
	}
}

func TestReaderIgnoresWhatIsNewAndReadsAllSpellings(t *testing.T) {
	body := ` {"new":[{"a":"]}\"","b":[null,-1.5e9,true]}], "v" : 1 ,"\u0069d":"\u0061.1\/1","keys":["\ud83d\ude00\n\t\"",` +
		`{"key64":"/w==","new":0}],"want":{"tokens":1,"units":{ "z" : 2 , "a":3,"none":0}},"need":{},` + "\r\n\t" + `"sent":"1h","patience":"2m"} `
	r, err := decodeRequest([]byte(body))
	require.NoError(t, err)
	require.Equal(t, lease.Request{
		ID:   lease.ID{Holder: lease.Holder{Name: "a", Incarnation: 1}, Seq: 1},
		Keys: []lease.Key{"😀\n\t\"", "\xff"}, Want: lease.Amount{Tokens: 1, Units: lease.Units{{Unit: "a", N: 3}, {Unit: "z", N: 2}}},
		Sent: time.Hour, Patience: 2 * time.Minute,
	}, r)
}

func TestReportNamesTheFieldThatIsWrong(t *testing.T) {
	const sound = `{"v":1,"holder":"a.1","sent":"0s","counts":[{"id":"a.1/1","keys":["k"],"points":[{"count":1,"age":"1s"}]}],"given_up":[{"id":"a.1/2","keys":["k"]}]}`
	_, err := decodeReport([]byte(sound))
	require.NoError(t, err)
	for _, c := range [][3]string{
		{`"count":1`, `"count":-1`, "field counts[0].points[0].count"},
		{`"age":"1s"`, `"age":"1"`, "field counts[0].points[0].age"},
		{`,"age":"1s"`, ``, "field counts[0].points[0].age: it is missing"},
		{`"points"`, `"returned":0.5,"points"`, "field counts[0].returned"},
		{`"id":"a.1/2",`, ``, "field given_up[0].id: it is missing"},
		{`"a.1",`, `"a",`, "field holder"},
		{`"sent"`, `"goodbye":1,"sent"`, "field goodbye: 1 is neither true nor false"},
	} {
		_, err := decodeReport([]byte(strings.Replace(sound, c[0], c[1], 1)))
		require.ErrorContains(t, err, c[2])
		require.ErrorIs(t, err, lease.ErrBadRequest)
	}
	many := `{"v":1,"holder":"a.1","sent":"0s","counts":[` + strings.Repeat("{},", MaxCounts) + `{}]}`
	_, err = decodeReport([]byte(many))
	require.ErrorContains(t, err, "field counts[0].id") // the first fault is told
	_, err = decodeReply([]byte(`{"v":1,"epoch":"1.1","ended":[` + strings.Repeat(`"a.1/1",`, MaxCounts) + `"a.1/1"]}`))
	require.ErrorContains(t, err, "field ended: it has more than 4096 entries")
}

func TestWriterRefusesWhatTheWireCannotCarry(t *testing.T) {
	good := request(1, "k")
	for says, spoil := range map[string]func(*lease.Request){
		"field tokens: -1":   func(r *lease.Request) { r.Want.Tokens = -1 },
		"field slots":        func(r *lease.Request) { r.Need.Slots = maxNumber + 1 },
		"field sent":         func(r *lease.Request) { r.Sent = -1 },
		"field patience":     func(r *lease.Request) { r.Patience = -time.Second },
		"field keys: 0 keys": func(r *lease.Request) { r.Keys = nil },
		"field keys: 9 keys": func(r *lease.Request) { r.Keys = make([]lease.Key, 9) },
		"has no name":        func(r *lease.Request) { r.ID.Holder.Name = "" },
		"is not UTF-8":       func(r *lease.Request) { r.ID.Holder.Name = "\xff" },
	} {
		r := good
		spoil(&r)
		_, err := encodeRequest(r)
		require.ErrorContains(t, err, says)
		require.ErrorIs(t, err, lease.ErrBadRequest)
	}
	_, err := encodeAnswer(lease.Answer{ID: good.ID})
	require.ErrorContains(t, err, "outcome")
	_, err = encodeAnswer(lease.Answer{ID: good.ID, Outcome: lease.Refused})
	require.ErrorContains(t, err, "refusal.reason")
}
