package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type grammar struct {
	Go struct {
		Key   string        `required:"" placeholder:"K"`
		Count int           `default:"3" placeholder:"N"`
		Wait  time.Duration `env:"NATS_WAIT" default:"1s" placeholder:"D"`
		Rate  float64       `placeholder:"R"`
		Part  []string      `placeholder:"P"`
		More  []string      `arg:"" optional:""`
	} `cmd:"" default:"withargs"`
	Pass struct {
		Key     string   `required:"" placeholder:"K"`
		Count   int      `default:"3" placeholder:"N"`
		Command []string `arg:"" passthrough:"partial"`
	} `cmd:""`
}

func parse(environ []string, args ...string) (*grammar, *Invocation, string, error) {
	var g grammar
	var out bytes.Buffer
	in, err := Parse(&g, "thing", "Does a thing.", args, Streams{Out: &out, Err: &out, Environ: environ})
	return &g, in, out.String(), err
}

func TestFlagIsStrongerThanVariableThanDefault(t *testing.T) {
	g, in, _, err := parse(nil, "--key", "flag")
	require.NoError(t, err)
	require.Equal(t, "flag", g.Go.Key)
	require.Equal(t, 3, g.Go.Count)
	_, around := in.Variable("key")
	require.False(t, around)

	environ := []string{"RATION_KEY=around", "RATION_COUNT=7", "NATS_WAIT=2s"}
	g, in, _, err = parse(environ, "--count", "9")
	require.NoError(t, err)
	require.Equal(t, "around", g.Go.Key)
	require.Equal(t, 9, g.Go.Count)
	require.Equal(t, 2*time.Second, g.Go.Wait)
	name, around := in.Variable("key")
	require.True(t, around)
	require.Equal(t, "RATION_KEY", name)
	_, around = in.Variable("count")
	require.False(t, around)

	g, _, _, err = parse(append(environ, "RATION_WAIT=4s"))
	require.NoError(t, err)
	require.Equal(t, 4*time.Second, g.Go.Wait, "the project's own name of a variable comes first")
}

func TestEmptyVariableIsUnset(t *testing.T) {
	_, _, _, err := parse([]string{"RATION_KEY="})
	require.ErrorContains(t, err, "missing flags: --key=K; see thing --help")
	require.Equal(t, Misused, Code(err))
}

func TestBadValueNamesTheVariableThatSetIt(t *testing.T) {
	_, _, _, err := parse([]string{"RATION_COUNT=many"}, "go", "--key", "k")
	require.ErrorContains(t, err, "set by the environment variable RATION_COUNT")
	require.ErrorContains(t, err, "see thing go --help")
	_, _, _, err = parse([]string{"RATION_COUNT=1"}, "go", "--key", "k", "--count", "many")
	require.NotContains(t, err.Error(), "environment")
}

func TestHelpIsNoError(t *testing.T) {
	_, in, out, err := parse(nil, "go", "--help")
	require.NoError(t, err)
	require.Nil(t, in)
	require.Contains(t, out, "$RATION_WAIT, $NATS_WAIT")
}

func TestValuesAreReadInOneWay(t *testing.T) {
	for text, want := range map[string]int{"7": 7, "010": 10, "1_000": 1000, "-3": -3, "00": 0} {
		g, _, _, err := parse(nil, "--key", "k", "--count="+text)
		require.NoError(t, err, text)
		require.Equal(t, want, g.Go.Count, text)
	}
	for _, text := range []string{"", "+3", "0x10", "0b1", "1e3", "1.0", "_1", "1_", "1__0", "- 1", "--1", "9223372036854775808", "∞"} {
		_, _, _, err := parse(nil, "--key", "k", "--count="+text)
		require.ErrorContains(t, err, "is no whole number", text)
	}
	for _, key := range []string{"\xff", "a\xfe", "�", "\xed\xa0\x80", " ", "-", "a=b", "{}", "é"} { // each as it is
		g, _, _, err := parse(nil, "--key", key, "--", key)
		require.NoError(t, err, "%q", key)
		require.Equal(t, key, g.Go.Key)
		require.Equal(t, []string{key}, g.Go.More)
		g, _, _, err = parse([]string{"RATION_KEY=" + key})
		require.NoError(t, err, "%q", key)
		require.Equal(t, key, g.Go.Key)
	}
}

func TestAFlagWithoutItsValueSaysSo(t *testing.T) {
	for _, c := range []struct {
		args []string
		told string
	}{
		{[]string{"--key"}, "--key: it needs a value; write --key=K; see thing --help"},
		{[]string{"--key", "k", "--count"}, "--count: it needs a value; write --count=N; see thing --help"},
		{[]string{"--key", "k", "--wait"}, "--wait: it needs a value; write --wait=D; see thing --help"},
		{[]string{"--key", "k", "--part"}, "--part: it needs a value; write --part=P; see thing --help"},
		{[]string{"--key", "--count", "3"}, "--key: it needs a value; write --key=K, with the = where the value begins with -; see thing --help"},
		{[]string{"--key", "k", "--wait", "-x"}, "--wait: it needs a value; write --wait=D, with the = where the value begins with -; see thing --help"},
		{[]string{"--key", "k", "--part", "-3"}, "--part: it needs a value; write --part=P, with the = where the value begins with -; see thing --help"},
		{[]string{"go", "--key", "k", "--rate", "-."}, "--rate: it needs a value; write --rate=R, with the = where the value begins with -; see thing go --help"},
		{[]string{"pass", "--key", "k"}, "missing arguments: <command> ...; see thing pass --help"},
	} {
		_, _, _, err := parse(nil, c.args...)
		require.EqualError(t, err, c.told, "%q", c.args)
		require.Equal(t, Misused, Code(err))
	}
	g, _, _, err := parse(nil, "--key", "k", "--count", "-3", "--wait", "-5s", "--rate", "-0.5", "--part", "a", "--part", "b,c")
	require.NoError(t, err, "whether a number may be below 0 is not for the parser to say")
	require.Equal(t, -3, g.Go.Count)
	require.Equal(t, -5*time.Second, g.Go.Wait)
	require.Equal(t, -0.5, g.Go.Rate)
	require.Equal(t, []string{"a", "b", "c"}, g.Go.Part)
}

func TestHelpPutsFlagsWhereTheyAreFlags(t *testing.T) {
	_, _, out, err := parse(nil, "pass", "--help")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(out, "Usage: thing pass --key=K [flags] [--] <command> ...\n"), out)
	_, _, out, err = parse(nil, "go", "--help")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(out, "Usage: thing go --key=K [<more> ...] [flags]\n"), out)
}
