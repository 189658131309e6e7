package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/cmd/internal/cli"
)

// FuzzFlags reads any arguments, one on each line: they are understood or an error
// of misuse, and the key and the command are passed on byte by byte.
func FuzzFlags(f *testing.F) {
	for _, line := range []string{
		"load --key k --count 3", "load --key=\xff -j 4 --rate 2.5 --wait 1h30m", "exec --key k -j4 -- echo {} \xff", "exec --key k echo -n -", "help exec", "--version",
		"load --cost 010 --key -", "exec --key", "load -j=-1", "-", "--", "warden", "load --key k --no-key", "load --help=x", "version --key",
		"load --key a,b --key=\xff,c --key ", "exec --key=a --key=b -- echo",
	} {
		f.Add(strings.ReplaceAll(line, " ", "\n"))
	}
	f.Fuzz(func(t *testing.T, lines string) {
		args := strings.Split(lines, "\n")
		var all commands
		in, err := cli.Parse(&all, name, description, args, cli.Streams{Out: io.Discard, Err: io.Discard})
		if err != nil {
			require.Nil(t, in)
			require.Equal(t, cli.Misused, cli.Code(err), "%v", err)
			require.NotEmpty(t, err.Error())
			return
		}
		if in == nil {
			return // help
		}
		given := func(text string) bool {
			return slices.ContainsFunc(args, func(arg string) bool { return arg == text || strings.HasSuffix(arg, "="+text) })
		}
		switch in.Selected().Name {
		case "load":
			for _, key := range all.Load.Key {
				require.True(t, given(key), "%q", key)
			}
			_ = all.Load.validate()
		case "exec":
			for _, key := range all.Exec.Key {
				require.True(t, given(key), "%q", key)
			}
			for _, word := range all.Exec.Command {
				require.Contains(t, args, word)
			}
			_ = all.Exec.validate()
		}
	})
}
