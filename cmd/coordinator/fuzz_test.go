package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"ration/algo"
	"ration/cmd/internal/cli"
	"ration/lease"
)

// FuzzFlags reads any arguments, one on each line: they are understood, or an error
// of misuse.
func FuzzFlags(f *testing.F) {
	for _, line := range []string{
		"--listen :4222 --http :8422", "serve --nats nats://a,b --name \xff", "check", "check -- -", "status \xff --json", "status --json=no k", "healthcheck --http x",
		"help check", "--version", "--connect-wait 1h", "-h", "--", "serve serve",
	} {
		f.Add(strings.ReplaceAll(line, " ", "\n"))
	}
	f.Fuzz(func(t *testing.T, lines string) {
		var all commands
		in, err := cli.Parse(&all, name, description, strings.Split(lines, "\n"), cli.Streams{Out: io.Discard, Err: io.Discard})
		if err != nil {
			require.Nil(t, in)
			require.Equal(t, cli.Misused, cli.Code(err), "%v", err)
			require.NotEmpty(t, err.Error())
			return
		}
		if in != nil && in.Selected().Name == "serve" {
			_ = all.Serve.settle(in, cli.Streams{})
		}
	})
}

// FuzzCheck reads any bytes as a policy file, as check does: what it tells, for
// people and as JSON, is the policy, or errors each at its place.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(lease.Demo().String()))
	f.Add([]byte("limits: [{key: 'it''s/{a}', rules: [10/1d fixed tz=Europe/Berlin, 4 concurrent, 100/m bucket burst=7], guard: 50ms}]"))
	f.Add([]byte("limits: [{key: \"\\u001b[31m\", rules: [unlimited]}, {key: a, rules: [0/1s counter]}]\nunknown: allow"))
	f.Add([]byte("limits:\n- key: a\n  rules: [x]\n  gard: 1"))
	if text, err := os.ReadFile("testdata/check.txt"); err == nil {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(t.TempDir(), "p.yaml")
		require.NoError(t, os.WriteFile(file, text, 0o600))
		p, err := readPolicy(file)
		if err != nil {
			told := refusedPolicy(file, err)
			require.False(t, told.Good)
			require.NotEmpty(t, told.Errors)
			for _, e := range told.Errors {
				require.True(t, e.Line > 0 && e.Column > 0 && e.Problem != "" && e.Remedy != "", "%+v", e)
			}
			return
		}
		told := checkedPolicy(file, p, 0)
		var out bytes.Buffer
		require.NoError(t, printJSON(cli.Streams{Out: &out}, told))
		var back checked
		require.NoError(t, json.Unmarshal(out.Bytes(), &back))
		require.Equal(t, told, back)
		require.Len(t, back.Limits, len(p.Limits))
		for i, l := range back.Limits {
			require.Len(t, l.Rules, len(p.Limits[i].Rules))
			for j, r := range l.Rules {
				rule, err := algo.ParseRule(r.Rule)
				require.NoError(t, err)
				require.Equal(t, p.Limits[i].Rules[j], rule)
				require.NotEmpty(t, r.WorstText)
				require.Positive(t, r.Memory)
				require.True(t, r.Worst == nil || *r.Worst >= 0, "%+v", r)
			}
		}
		out.Reset()
		require.NoError(t, printCheck(cli.Streams{Out: &out}, told))
		require.True(t, utf8.Valid(out.Bytes()))
		require.False(t, bytes.ContainsFunc(out.Bytes(), func(r rune) bool { return r != '\n' && unicode.IsControl(r) }), "%q", out.String())
	})
}
