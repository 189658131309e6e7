package bus

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// CheckURL says what is wrong with the URL of a NATS system, or of several divided
// by commas, as Connect takes them.
func CheckURL(urls string) error {
	for s := range strings.SplitSeq(urls, ",") {
		s = strings.TrimSpace(s)
		full := s
		if !strings.Contains(s, "://") {
			full = "nats://" + s
		}
		u, err := url.Parse(full)
		port := uint64(1)
		if err == nil && u.Port() != "" {
			port, err = strconv.ParseUint(u.Port(), 10, 16)
		}
		if err != nil || u.Hostname() == "" || port == 0 || !slices.Contains(schemes, u.Scheme) {
			return fmt.Errorf("bus: %q is no NATS URL; give one like %s", redacted(s), DefaultURL)
		}
	}
	return nil
}

// schemes are those of nats.go.
var schemes = []string{"nats", "tls", "ws", "wss"}

// Redacted gives NATS URLs, divided by commas, without their passwords and tokens.
func Redacted(urls string) string {
	all := strings.Split(urls, ",")
	for i, s := range all {
		all[i] = redacted(strings.TrimSpace(s))
	}
	return strings.Join(all, ",")
}

// redacted needs no URL that is one, since those that are none are told of, too.
func redacted(s string) string {
	at := strings.LastIndexByte(s, '@')
	if at < 0 {
		return s
	}
	before := 0
	if i := strings.Index(s, "://"); i >= 0 && i < at {
		before = i + len("://")
	}
	hidden := "xxxxx"
	if user, _, ok := strings.Cut(s[before:at], ":"); ok {
		hidden = user + ":xxxxx"
	}
	return s[:before] + hidden + s[at:]
}
