package redisbackend_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/integration/harness"
	"ration/redisbackend"
)

// TestServerThatIsTooOldIsRefused (B134): version 5 is the first that will do; it is
// named, with the one that is there. Valkey gives the version of Redis that it is like.
func TestServerThatIsTooOldIsRefused(t *testing.T) {
	for _, c := range []struct {
		info string
		old  bool
	}{
		{"redis_version:4.0.14", true},
		{"redis_version:2.8.9", true},
		{"redis_version:5.0.0", false},
		{"redis_version:6.2.14", false},
		{"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1", false},
		{"redis_version:10.0.0", false},
		{"redis_version:255.255.255", false}, // of a developer
		{"some_other_make:1", false},
	} {
		addr := imposter(t, func(command []string) string {
			switch command[0] {
			case "info":
				info := "# Server\r\n" + c.info + "\r\nmaxmemory:0\r\n"
				return fmt.Sprintf("$%d\r\n%s\r\n", len(info), info)
			case "scan":
				return "*2\r\n$1\r\n0\r\n*0\r\n"
			case "wait":
				return ":0\r\n"
			}
			return "*0\r\n"
		})
		err := open(t, "redis://"+addr).Check(bounded(t), "c")
		if !c.old {
			require.NoError(t, err, c.info)
			continue
		}
		require.ErrorIs(t, err, redisbackend.ErrOld)
		_, version, _ := strings.Cut(c.info, ":")
		require.ErrorContains(t, err, "is version "+version+"; use 5.0 or later")
	}
}

// needs are the commands that the user of a coordinator calls.
var needs = []string{"evalsha", "eval", "hgetall", "hmget", "hset", "hdel", "del", "pexpire", "time", "scan", "wait", "info"}

// TestWhatAUserMayNotIsNamed (B134): each command that is missing, or keys that are. What
// the error says is enough.
func TestWhatAUserMayNotIsNamed(t *testing.T) {
	h := harness.New(t)
	r := h.Redis()
	admin := raw(t, r)
	allow := func(rules ...any) {
		t.Helper()
		require.NoError(t, admin.Do(bounded(t), append([]any{"ACL", "SETUSER", "u", "reset", "on", ">secret"}, rules...)...).Err())
	}
	all := []any{"~{ration:*"}
	for _, name := range needs {
		all = append(all, "+"+name)
	}
	server := func() *redisbackend.Server { return open(t, "redis://u:secret@"+r.Addr) }
	allow(all...)
	require.NoError(t, server().Check(bounded(t), "c"))
	x := lead(t, server().Mirror("c", 0), `limits: [{key: "{a}", rules: [1/1h]}]`)
	require.True(t, newAsking("w").takes(t, x.leader, "t"))
	sameInRedis(t, x)
	for i, name := range needs {
		require.NoError(t, admin.ScriptFlush(bounded(t)).Err()) // so that EVAL is needed
		allow(append(append([]any{}, all...), "-"+name)...)
		err := server().Check(bounded(t), "c")
		require.ErrorContains(t, err, "allow it, ACL SETUSER", name)
		require.Contains(t, strings.ToLower(strings.SplitN(err.Error(), "allow it", 2)[0]), name, "it is not named")
		for _, word := range all {
			require.Contains(t, err.Error(), word)
		}
		require.NotContains(t, err.Error(), "secret", i)
	}
	allow(append([]any{"~other:*"}, all[1:]...)...)
	require.ErrorContains(t, server().Check(bounded(t), "c"), "~{ration:*")
	allow(append([]any{"~{ration:c:*"}, all[1:]...)...)
	require.NoError(t, server().Check(bounded(t), "c"), "those of its cell will do")
}

// TestPasswordsAreNotShown, wherever in the URL they stand.
func TestPasswordsAreNotShown(t *testing.T) {
	for _, url := range []string{
		"redis://user:hunter2@localhost:1",
		"redis://:hunter2@localhost:1?addr=localhost:2",
		"redis://:hunter2@localhost:1?master_name=m&username=u&password=hunter2",
		"redis://localhost:1?password=hunter2&master_name=m",
	} {
		s := open(t, url)
		require.NotContains(t, s.String(), "hunter2")
		err := s.Check(bounded(t), "c")
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hunter2")
	}
	for _, url := range []string{
		"redis://user:hunter2@local host", "redis://:hunter2@localhost/x", "http://:hunter2@localhost",
		"redis://:hunter2@localhost?x=1", "redis://:hunter2@localhost:1?addr=x&pool_size=q",
	} {
		_, err := redisbackend.Open(url, redisbackend.DefaultConfig())
		require.Error(t, err, url)
		require.NotContains(t, err.Error(), "hunter2")
		require.ErrorContains(t, err, "write it like redis://127.0.0.1:6379")
	}
}
