package bus

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"ration/lease"
)

// keyring is a directory with the files of a user, as an operator makes them.
type keyring struct {
	t   *testing.T
	dir string
}

func (k keyring) write(name string, body []byte) string {
	k.t.Helper()
	file := filepath.Join(k.dir, name)
	require.NoError(k.t, os.WriteFile(file, body, 0o600))
	return file
}

func (k keyring) pem(name, kind string, der []byte) string {
	return k.write(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// certify makes an authority, ca.pem, and a certificate of it that serves a server of
// this machine as well as a client, one.pem and one.key.
func (k keyring) certify() {
	k.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(k.t, err)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, &key.PublicKey, key)
	require.NoError(k.t, err)
	k.pem("ca.pem", "CERTIFICATE", der)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "one"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err = x509.CreateCertificate(rand.Reader, leaf, authority, &key.PublicKey, key)
	require.NoError(k.t, err)
	k.pem("one.pem", "CERTIFICATE", der)
	der, err = x509.MarshalECPrivateKey(key)
	require.NoError(k.t, err)
	k.pem("one.key", "EC PRIVATE KEY", der)
}

// nkey makes the seed of a user, NAME.nk, and gives its public key.
func (k keyring) nkey(name string) (public string) {
	k.t.Helper()
	user, err := nkeys.CreateUser()
	require.NoError(k.t, err)
	public, err = user.PublicKey()
	require.NoError(k.t, err)
	seed, err := user.Seed()
	require.NoError(k.t, err)
	k.write(name+".nk", seed)
	return public
}

// operator makes an operator, an account and a user of it, one.creds, and gives the
// configuration of a server that trusts the operator, with the user's JWT and seed.
func (k keyring) operator() (conf, user, seed string) {
	k.t.Helper()
	pair := func(make func() (nkeys.KeyPair, error)) (pair nkeys.KeyPair, public string) {
		pair, err := make()
		require.NoError(k.t, err)
		public, err = pair.PublicKey()
		require.NoError(k.t, err)
		return pair, public
	}
	operator, operatorKey := pair(nkeys.CreateOperator)
	account, accountKey := pair(nkeys.CreateAccount)
	one, oneKey := pair(nkeys.CreateUser)
	operatorJWT, err := jwt.NewOperatorClaims(operatorKey).Encode(operator)
	require.NoError(k.t, err)
	accountJWT, err := jwt.NewAccountClaims(accountKey).Encode(operator)
	require.NoError(k.t, err)
	user, err = jwt.NewUserClaims(oneKey).Encode(account)
	require.NoError(k.t, err)
	secret, err := one.Seed()
	require.NoError(k.t, err)
	creds, err := jwt.FormatUserConfig(user, secret)
	require.NoError(k.t, err)
	k.write("one.creds", creds)
	return fmt.Sprintf("operator: %s\nresolver: MEMORY\nresolver_preload: { %s: %s }\n", operatorJWT, accountKey, accountJWT), user, string(secret)
}

// TestEveryWayToShowWhoOneIs connects in each way that the nats command knows, told by a
// ConnectConfig and by a context of it, and in the same way with something wrong.
func TestEveryWayToShowWhoOneIs(t *testing.T) {
	k := keyring{t, t.TempDir()}
	k.certify()
	at := func(name string) string { return filepath.Join(k.dir, name) }
	public := k.nkey("one")
	k.nkey("stranger")
	operator, userJWT, userSeed := k.operator()
	stranger := keyring{t, t.TempDir()}
	_, strangerJWT, strangerSeed := stranger.operator()
	tls := fmt.Sprintf("cert_file: %q, key_file: %q", at("one.pem"), at("one.key"))

	byUser := configured(t, `authorization { users = [ { user: ann, password: secret }, { nkey: `+public+` } ] }`)
	byToken := configured(t, `authorization { token: s3cret }`)
	byJWT := configured(t, operator)
	byTLS := configured(t, "tls { "+tls+" }")
	mutual := configured(t, fmt.Sprintf("tls { %s, ca_file: %q, verify: true }", tls, at("ca.pem")))
	first := configured(t, "tls { "+tls+", handshake_first: true }")

	type fields map[string]any
	for _, c := range []struct {
		name, url string
		cfg       ConnectConfig
		context   fields
		bad       ConnectConfig // is refused
		says      string
	}{
		{
			"user", byUser, ConnectConfig{User: "ann", Password: "secret"}, fields{"user": "ann", "password": "secret"},
			ConnectConfig{User: "ann", Password: "guess"}, "refuses the credentials",
		},
		{
			"token", byToken, ConnectConfig{Token: "s3cret"}, fields{"token": "s3cret"},
			ConnectConfig{Token: "guess"}, "refuses the credentials",
		},
		{
			"nkey", byUser, ConnectConfig{NKey: at("one.nk")}, fields{"nkey": "~/one.nk"},
			ConnectConfig{NKey: at("stranger.nk")}, "refuses the credentials",
		},
		{
			"creds", byJWT, ConnectConfig{Creds: at("one.creds")}, fields{"creds": "$KEYRING/one.creds"},
			ConnectConfig{Creds: filepath.Join(stranger.dir, "one.creds")}, "refuses the credentials",
		},
		{
			"JWT", byJWT, ConnectConfig{JWT: userJWT, Seed: userSeed}, fields{"user_jwt": userJWT, "user_seed": userSeed},
			ConnectConfig{JWT: strangerJWT, Seed: strangerSeed}, "refuses the credentials",
		},
		{
			"TLS", byTLS, ConnectConfig{CA: at("ca.pem")}, fields{"ca": at("ca.pem")},
			ConnectConfig{}, "name whom to trust in CA",
		},
		{
			"mutual TLS", mutual, ConnectConfig{CA: at("ca.pem"), Cert: at("one.pem"), Key: at("one.key")},
			fields{"ca": "~/ca.pem", "cert": "~/one.pem", "key": "~/one.key"},
			ConnectConfig{CA: at("ca.pem")}, "a certificate to show in Cert and Key",
		},
		{
			"TLS first", first, ConnectConfig{CA: at("ca.pem"), TLSFirst: true}, fields{"ca": at("ca.pem"), "tls_first": true},
			ConnectConfig{CA: at("ca.pem"), Wait: 100 * time.Millisecond}, "no NATS server",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			works := func(url string, cfg ConnectConfig) {
				t.Helper()
				cfg.Wait = 20 * time.Second
				nc, err := Connect(url, cfg)
				require.NoError(t, err)
				require.NoError(t, nc.FlushWithContext(bounded(t)))
				nc.Close()
			}
			works(c.url, c.cfg)

			if c.bad.Wait == 0 {
				c.bad.Wait = 20 * time.Second
			}
			_, err := Connect(c.url, c.bad)
			require.ErrorContains(t, err, c.says)
			if c.says == "refuses the credentials" {
				require.ErrorIs(t, err, ErrPermission)
				require.ErrorIs(t, err, lease.ErrForbidden)
			}
			require.NotContains(t, err.Error(), "guess")
			require.NotContains(t, err.Error(), "--", "a program has no flags")
			if len(c.cfg.CA) == 0 {
				_, err = Connect(c.url, ConnectConfig{Wait: 20 * time.Second}) // who shows nothing
				require.ErrorIs(t, err, ErrPermission)
			}

			written := fields{"description": "a test", "url": c.url, "inbox_prefix": "_INBOX_one", "color_scheme": ""}
			maps.Copy(written, c.context)
			url, cfg, err := ReadContext(k.context(written))
			require.NoError(t, err)
			require.Equal(t, c.url, url)
			require.Equal(t, "_INBOX_one", cfg.InboxPrefix)
			works(url, cfg)
			cfg.InboxPrefix = ""
			require.Equal(t, c.cfg, cfg, "the context says the same")
		})
	}
}

// context writes a context, and gives its name and where it is to be found.
func (k keyring) context(fields map[string]any) (name string, getenv func(string) string) {
	k.t.Helper()
	body, err := json.Marshal(fields)
	require.NoError(k.t, err)
	dir := filepath.Join(k.dir, ".config", "nats", "context")
	require.NoError(k.t, os.MkdirAll(dir, 0o700))
	require.NoError(k.t, os.WriteFile(filepath.Join(dir, "one.json"), body, 0o600))
	return "one", k.getenv
}

func (k keyring) getenv(name string) string {
	return map[string]string{"HOME": k.dir, "KEYRING": k.dir}[name]
}

// TestContextsAreFoundWhereTheNatsCommandKeepsThem: by name under XDG_CONFIG_HOME or
// ~/.config, by an absolute path, or as the selected one.
func TestContextsAreFoundWhereTheNatsCommandKeepsThem(t *testing.T) {
	k := keyring{t, t.TempDir()}
	name, getenv := k.context(map[string]any{"user": "ann", "token": "ignored beside a user"})
	url, cfg, err := ReadContext(name, getenv)
	require.NoError(t, err)
	require.Equal(t, DefaultURL, url)
	require.Equal(t, ConnectConfig{User: "ann"}, cfg)

	nats := filepath.Join(k.dir, ".config", "nats")
	elsewhere := func(variable string) string {
		return map[string]string{"XDG_CONFIG_HOME": filepath.Dir(nats)}[variable]
	}
	_, again, err := ReadContext(name, elsewhere)
	require.NoError(t, err)
	require.Equal(t, cfg, again)
	_, again, err = ReadContext(filepath.Join(nats, "context", "one.json"), func(string) string { return "" })
	require.NoError(t, err)
	require.Equal(t, cfg, again)

	_, _, err = ReadContext(SelectedContext, getenv)
	require.ErrorContains(t, err, "none is selected")
	require.NoError(t, os.WriteFile(filepath.Join(nats, "context.txt"), []byte("one\n"), 0o600))
	_, again, err = ReadContext(SelectedContext, getenv)
	require.NoError(t, err)
	require.Equal(t, cfg, again)
}

// TestContextsThatCannotBeUsedSayWhy: and what to do.
func TestContextsThatCannotBeUsedSayWhy(t *testing.T) {
	k := keyring{t, t.TempDir()}
	for _, name := range []string{"missing", "../one", "a/b", ""} {
		_, _, err := ReadContext(name, k.getenv)
		require.ErrorContains(t, err, fmt.Sprintf("bus: the nats context %q: ", name))
	}
	for _, field := range []string{"nsc", "socks_proxy", "windows_cert_store"} {
		_, _, err := ReadContext(k.context(map[string]any{field: "x"}))
		require.ErrorContains(t, err, fmt.Sprintf("%q is nothing that Ration can use; give the URL and the credentials themselves", field))
	}
	name, getenv := k.context(map[string]any{"url": 5})
	_, _, err := ReadContext(name, getenv)
	require.ErrorContains(t, err, filepath.Join("context", "one.json"))

	require.ErrorContains(t, ConnectConfig{JWT: "j"}.Validate(), "a user's JWT and its seed belong together")
	err = ConnectConfig{JWT: "j", Seed: "s", Token: "t"}.Validate()
	require.ErrorContains(t, err, "token and JWT exclude each other")
	require.False(t, strings.Contains(err.Error(), `"s"`))
}
