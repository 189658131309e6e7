package redisbackend_test

import (
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"ration/coordinator"
	"ration/integration/harness"
)

// TestServerInTroubleIsWaitedFor: it has no memory left, cannot save, or wants replicas
// that it has not. The log says so and what to do; the turns that it refused go again
// when that is mended.
func TestServerInTroubleIsWaitedFor(t *testing.T) {
	set := func(t *testing.T, c *redis.Client, name, value string) {
		t.Helper()
		require.NoError(t, c.ConfigSet(bounded(t), name, value).Err())
	}
	for name, c := range map[string]struct {
		says       string
		harm, mend func(t *testing.T, c *redis.Client)
	}{
		"OOM": {
			"it has no memory left; raise maxmemory",
			func(t *testing.T, c *redis.Client) { set(t, c, "maxmemory", "1") },
			func(t *testing.T, c *redis.Client) { set(t, c, "maxmemory", "0") },
		},
		"NOREPLICAS": {
			"it has fewer replicas than its min-replicas-to-write",
			func(t *testing.T, c *redis.Client) { set(t, c, "min-replicas-to-write", "1") },
			func(t *testing.T, c *redis.Client) { set(t, c, "min-replicas-to-write", "0") },
		},
		"MISCONF": {
			"it cannot save its data; its log says why",
			func(t *testing.T, c *redis.Client) {
				set(t, c, "dir", "/proc")
				set(t, c, "save", "3600 1")
				require.NoError(t, c.BgSave(bounded(t)).Err()) // which fails
			},
			func(t *testing.T, c *redis.Client) { set(t, c, "save", "") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := harness.New(t)
			r := h.Redis("--enable-protected-configs", "yes")
			x := lead(t, open(t, r.URL()).Mirror("c", 0), allKinds)
			n := startLoad(t, func() *coordinator.Leader { return x.leader })
			n.goesOn(h, 50)
			c.harm(t, raw(t, r))
			h.Until("a word about it", func() error { return least(x.log.count(c.says), 1) })
			require.Contains(t, x.log.String(), name)
			c.mend(t, raw(t, r))
			n.goesOn(h, 50)
			n.end()
			sameInRedis(t, x)
		})
	}
}

// TestEveryErrorHasARemedy, also where a server cannot be brought to it here.
func TestEveryErrorHasARemedy(t *testing.T) {
	for reply, remedy := range map[string]string{
		"LOADING Redis is loading the dataset in memory":         "it reads its data, and will be asked again",
		"MOVED 3999 127.0.0.1:6381":                              "it is a node of a Cluster; name a further one with &addr=host:port",
		"CLUSTERDOWN The cluster is down":                        "redis-cli --cluster check says which",
		"BUSY Redis is busy running a script":                    "redis-cli SCRIPT KILL ends it",
		"ERR This instance has cluster support disabled":         "it is no Cluster; leave &addr= out of the URL",
		"NOPERM User u has no permissions to run the 'eval' one": "allow it, ACL SETUSER",
	} {
		addr := imposter(t, func([]string) string { return "-" + reply + "\r\n" })
		server := open(t, "redis://"+addr)
		err := server.Check(bounded(t), "c")
		require.ErrorContains(t, err, reply)
		require.ErrorContains(t, err, remedy)
		_, err = server.Mirror("c", 0).Look(bounded(t))
		require.ErrorContains(t, err, remedy)
	}
	page, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	for _, told := range []string{ // which these tests have seen, and those of the start in integration/system
		"LOADING", "BUSY", "MOVED", "CLUSTERDOWN", "NOPERM", "OOM", "MISCONF", "NOREPLICAS", "READONLY", "WRONGPASS", "NOAUTH",
		"no such host", "its user may not call", "0 of 1 replicas of Redis", "the server may evict", "the server is too old",
		"the mirror has lost what it had; writing it back", "a record cannot be read",
		"a key in Redis has no name of a record",
	} {
		require.Contains(t, string(page), "`"+told+"`")
	}
	require.ErrorContains(t, open(t, "redis://no-such-host.invalid:6379").Check(bounded(t), "c"), "; correct the host")
}
