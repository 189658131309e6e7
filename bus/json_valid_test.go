package bus

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzValid: it judges as encoding/json does.
func FuzzValid(f *testing.F) {
	deep := strings.Repeat("[", maxDepth)
	for _, s := range []string{
		sound, ``, ` `, `0`, `-0`, `01`, `-`, `1.`, `1.5`, `.5`, `1e`, `1e5`, `1E+5`, `1e-`, `1e5.5`, `--1`, `+1`, `1 2`, `Infinity`,
		`true`, `tru`, `false`, `null`, `nulll`, `nan`, `"`, `"a`, `"a"b`, `"\"`, `"\n\t\/\u00e9"`, `"\x"`, `"\u12"`, `"\u12g4"`, `"` + "\x1f" + `"`, "\"\x7f\xff\"",
		`{}`, `{ }`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":1 "b":2}`, `{a:1}`, `{"a":1}}`, `{"a":[{"b":[]}]}`, `{"a":1]`,
		`[]`, `[ ]`, `[1,]`, `[,1]`, `[1 2]`, `[1`, `[1}`, `[[]`, "\t\r\n [ 1 , 2 ] \n", "\v1", "\ufeff{}",
		deep + strings.Repeat("]", maxDepth), "[" + deep + strings.Repeat("]", maxDepth+1), deep, strings.Repeat(`{"":`, MaxMessage/5),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if json.Valid(b) != valid(b) { // said only then, since saying it takes longest
			require.Equal(t, json.Valid(b), valid(b), "%q", b)
		}
	})
}
