package system

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"ration/integration/harness"
)

// A coordinator whose Redis is not there, or does not let it in, says what is wrong and
// what to do, keeps trying, and leads once that is mended. It shows no password.
func TestCoordinatorSaysWhatIsWrongWithRedisAndKeepsTrying(t *testing.T) {
	manual := redisFaults(t)
	dir := t.TempDir()
	ca := certify(t, dir)
	elsewhere := t.TempDir()
	certify(t, elsewhere)
	keys := func(dir string) []string {
		return []string{
			"--tls-cert-file", filepath.Join(dir, "server.pem"), "--tls-key-file", filepath.Join(dir, "server.key"),
			"--tls-ca-cert-file", filepath.Join(dir, "ca.pem"), "--tls-auth-clients", "no",
		}
	}
	secure := func() (port string, args []string) {
		addr, err := harness.FreeAddr()
		require.NoError(t, err)
		_, port, _ = net.SplitHostPort(addr)
		return port, []string{"--tls-port", port}
	}
	trusts := []string{"SSL_CERT_FILE=" + ca, "SSL_CERT_DIR=" + dir}
	for name, play := range map[string]func(t *testing.T, h *harness.Test) (url string, env, says []string, mend func()){
		"Redis is down": func(t *testing.T, h *harness.Test) (string, []string, []string, func()) {
			r := h.Redis()
			r.Kill()
			return r.URL(), nil, []string{"connection refused", "start it, or correct the host and port"}, r.Start
		},
		"another password": func(t *testing.T, h *harness.Test) (string, []string, []string, func()) {
			r := h.Redis("--requirepass", "right-secret")
			c := redis.NewClient(&redis.Options{Addr: r.Addr, Password: "right-secret"})
			t.Cleanup(func() { c.Close() })
			return "redis://:wrong-secret@" + r.Addr, nil, []string{"WRONGPASS", "give the user and password in the URL"}, func() {
				require.NoError(t, c.ConfigSet(t.Context(), "requirepass", "wrong-secret").Err())
			}
		},
		"no password": func(t *testing.T, h *harness.Test) (string, []string, []string, func()) {
			r := h.Redis("--requirepass", "right-secret")
			c := redis.NewClient(&redis.Options{Addr: r.Addr, Password: "right-secret"})
			t.Cleanup(func() { c.Close() })
			return r.URL(), nil, []string{"NOAUTH", "give the user and password in the URL"}, func() {
				require.NoError(t, c.ConfigSet(t.Context(), "requirepass", "").Err())
			}
		},
		"it may not run scripts": func(t *testing.T, h *harness.Test) (string, []string, []string, func()) {
			r := h.Redis()
			c := redis.NewClient(&redis.Options{Addr: r.Addr})
			t.Cleanup(func() { c.Close() })
			require.NoError(t, c.Do(t.Context(), "ACL", "SETUSER", "ration", "on", ">user-secret", "~{ration:*", "+@all", "-evalsha").Err())
			return "redis://ration:user-secret@" + r.Addr, nil, []string{"NOPERM", "evalsha", "allow it, ACL SETUSER with ~{ration:* +evalsha +eval"}, func() {
				require.NoError(t, c.Do(t.Context(), "ACL", "SETUSER", "ration", "+evalsha").Err())
			}
		},
		"a replica": func(t *testing.T, h *harness.Test) (string, []string, []string, func()) {
			primary := h.Redis()
			host, port, _ := strings.Cut(primary.Addr, ":")
			r := h.Redis("--replicaof", host, port)
			c := redis.NewClient(&redis.Options{Addr: r.Addr})
			t.Cleanup(func() { c.Close() })
			return r.URL(), nil, []string{"READONLY", "it is a replica; name the primary, or the Sentinels"}, func() {
				require.NoError(t, c.ReplicaOf(t.Context(), "NO", "ONE").Err())
			}
		},
		"a certificate of nobody known": func(t *testing.T, h *harness.Test) (string, []string, []string, func()) {
			port, args := secure()
			r := h.Redis(append(args, keys(elsewhere)...)...)
			c := redis.NewClient(&redis.Options{Addr: r.Addr})
			t.Cleanup(func() { c.Close() })
			return "rediss://127.0.0.1:" + port, trusts, []string{"unknown authority", "SSL_CERT_FILE"}, func() {
				require.NoError(t, c.Do(t.Context(), "CONFIG", "SET", "tls-cert-file", filepath.Join(dir, "server.pem"), "tls-key-file", filepath.Join(dir, "server.key")).Err())
			}
		},
		"a certificate of another name": func(t *testing.T, h *harness.Test) (string, []string, []string, func()) {
			port, args := secure()
			h.Redis(append(args, keys(dir)...)...)
			return "rediss://localhost:" + port, trusts, []string{"certificate", "correct the host's name in the URL"}, nil
		},
		"it speaks no TLS": func(t *testing.T, h *harness.Test) (string, []string, []string, func()) {
			r := h.Redis()
			return "rediss://" + r.Addr, nil, []string{"if it does not speak TLS, write redis:// for rediss://"}, nil
		},
		"it wants TLS": func(t *testing.T, h *harness.Test) (string, []string, []string, func()) {
			port, args := secure()
			h.Redis(append(args, keys(dir)...)...)
			return "redis://127.0.0.1:" + port, nil, []string{"rediss://"}, nil
		},
		"no Sentinel": func(t *testing.T, h *harness.Test) (string, []string, []string, func()) {
			primary := h.Redis()
			s := h.Sentinel(primary)
			s.Kill()
			return "redis://" + s.Addr + "?master_name=mirror", nil, []string{"start a Sentinel, or correct its address"}, s.Start
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := harness.New(t)
			url, env, says, mend := play(t, h)
			nats, err := harness.FreeAddr()
			require.NoError(t, err)
			web, err := harness.FreeAddr()
			require.NoError(t, err)
			p := h.Start(harness.Command{
				Path: h.Bin("coordinator").Path("coordinator"),
				Args: []string{"serve", "--policy", h.Policy("limits: [{key: k, rules: [1/1s]}]"), "--listen", nats, "--http", web, "--redis", url},
				Env:  env,
			})
			line := h.Line(p, "waiting for Redis")
			require.Condition(t, func() bool {
				return slices.ContainsFunc(manual, func(told string) bool { return strings.Contains(line, told) })
			}, "%s is none of what docs/operations.md tells of: %q", line, manual)
			for _, text := range says {
				require.Contains(t, line, text)
			}
			select {
			case <-p.Ended():
				t.Fatal("it has ended")
			default:
			}
			if mend != nil {
				mend()
				h.Line(p, "leads cell")
			}
			require.NotContains(t, p.Output(), "secret")
			require.GreaterOrEqual(t, h.Stop(p), 0, "it ends when it is asked to")
		})
	}
}

// redisFaults is what docs/operations.md says that a coordinator tells of Redis.
func redisFaults(t *testing.T) (told []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "### When Redis is in trouble")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n### ")
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			for i, text := range strings.Split(cells[1], "`") {
				if i%2 == 1 {
					told = append(told, text)
				}
			}
		}
	}
	require.Greater(t, len(told), 20)
	return told
}

// A Redis that may drop what was spent is no mirror, whatever one waits for.
func TestCoordinatorRefusesARedisThatMayEvict(t *testing.T) {
	h := harness.New(t)
	r := h.Redis("--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru")
	nats, err := harness.FreeAddr()
	require.NoError(t, err)
	web, err := harness.FreeAddr()
	require.NoError(t, err)
	p := h.Start(harness.Command{
		Path: h.Bin("coordinator").Path("coordinator"),
		Args: []string{"serve", "--policy", h.Policy("limits: [{key: k, rules: [1/1s]}]"), "--listen", nats, "--http", web, "--redis", r.URL()},
	})
	require.Equal(t, 1, h.Wait(p))
	for _, text := range []string{"the server may evict", "the policy allkeys-lru", "set maxmemory-policy noeviction"} {
		require.Contains(t, p.Stderr(), text)
	}
}
