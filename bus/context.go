package bus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"
)

// SelectedContext is the name, for ReadContext, of the context that the nats command
// has selected.
const SelectedContext = "selected"

// contextFile is what Ration needs of a context of the nats command, and what it cannot
// do.
type contextFile struct {
	URL         string `json:"url"`
	User        string `json:"user"`
	Password    string `json:"password"`
	Token       string `json:"token"`
	Creds       string `json:"creds"`
	NKey        string `json:"nkey"`
	JWT         string `json:"user_jwt"`
	Seed        string `json:"user_seed"`
	Cert        string `json:"cert"`
	Key         string `json:"key"`
	CA          string `json:"ca"`
	TLSFirst    bool   `json:"tls_first"`
	InboxPrefix string `json:"inbox_prefix"`

	NSC   string `json:"nsc"`
	Proxy string `json:"socks_proxy"`
	Store string `json:"windows_cert_store"`
}

// ReadContext reads a context of the nats command: what `nats context add` makes, named
// as there, or the file of one, named by its absolute path. SelectedContext is the one
// that is selected, unless one has that name. It gives the URL, DefaultURL if the context
// has none, and the credentials. getenv gives variables of the environment, which say
// where the contexts are.
func ReadContext(name string, getenv func(string) string) (url string, cfg ConnectConfig, err error) {
	at, err := contextPath(name, getenv)
	if err != nil {
		return "", cfg, fmt.Errorf("bus: the nats context %q: %w", name, err)
	}
	raw, err := os.ReadFile(at)
	if err != nil {
		return "", cfg, fmt.Errorf("bus: the nats context %q: %w", name, err)
	}
	var c contextFile
	if err := json.Unmarshal(raw, &c); err != nil {
		return "", cfg, fmt.Errorf("bus: the nats context %q: %s: %w", name, at, err)
	}
	for field, value := range map[string]string{"nsc": c.NSC, "socks_proxy": c.Proxy, "windows_cert_store": c.Store} {
		if value != "" {
			return "", cfg, fmt.Errorf("bus: the nats context %q: %s: %q is nothing that Ration can use; give the URL and the credentials themselves", name, at, field)
		}
	}
	if c.URL == "" {
		c.URL = DefaultURL
	}
	return c.URL, c.config(getenv), nil
}

// config is how the nats command reads the fields: the first of several credentials
// holds, "~" is the home directory, and the path of creds may have variables.
func (c *contextFile) config(getenv func(string) string) ConnectConfig {
	home := func(file string) string {
		rest, ok := strings.CutPrefix(file, "~")
		if !ok {
			return file
		}
		dir, err := homeDir(getenv)
		if err != nil {
			return file
		}
		return dir + rest
	}
	cfg := ConnectConfig{Cert: home(c.Cert), Key: home(c.Key), CA: home(c.CA), TLSFirst: c.TLSFirst, InboxPrefix: c.InboxPrefix}
	switch {
	case c.User != "":
		cfg.User, cfg.Password = c.User, c.Password
	case c.Creds != "":
		cfg.Creds = home(os.Expand(c.Creds, getenv))
	case c.JWT != "":
		cfg.JWT, cfg.Seed = c.JWT, c.Seed
	case c.NKey != "":
		cfg.NKey = home(c.NKey)
	default:
		cfg.Token = c.Token
	}
	return cfg
}

// contextPath is the file of a context.
func contextPath(name string, getenv func(string) string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	dir := getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home, err := homeDir(getenv)
		if err != nil {
			return "", err
		}
		dir = filepath.Join(home, ".config")
	}
	dir = filepath.Join(dir, "nats")
	at, err := contextIn(dir, name)
	if name != SelectedContext || !errors.Is(err, fs.ErrNotExist) {
		return at, err
	}
	selected, err := os.ReadFile(filepath.Join(dir, "context.txt"))
	if err != nil {
		return "", fmt.Errorf("none is selected: %w; select one with nats context select", err)
	}
	return contextIn(dir, strings.TrimSpace(string(selected)))
}

func contextIn(dir, name string) (string, error) {
	if name == "" || strings.Contains(name, "..") || strings.ContainsRune(name, filepath.Separator) {
		return "", fmt.Errorf("%q is no name of one", name)
	}
	at := filepath.Join(dir, "context", name+".json")
	_, err := os.Stat(at)
	return at, err
}

func homeDir(getenv func(string) string) (string, error) {
	if dir := getenv("HOME"); dir != "" {
		return dir, nil
	}
	u, err := user.Current()
	if err != nil {
		return "", err
	}
	return u.HomeDir, nil
}
