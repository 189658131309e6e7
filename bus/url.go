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
			if strings.Contains(s, "@") {
				s = redacted(s)
			}
			return fmt.Errorf("bus: %q is no NATS URL; give one like %s", s, DefaultURL)
		}
	}
	return nil
}

// schemes are those of nats.go.
var schemes = []string{"nats", "tls", "ws", "wss"}

// redacted hides passwords.
func redacted(urls string) string {
	all := strings.Split(urls, ",")
	for i, s := range all {
		s = strings.TrimSpace(s)
		if u, err := url.Parse(s); err == nil {
			s = u.Redacted()
		} else if _, host, ok := strings.Cut(s, "@"); ok {
			s = "***@" + host
		}
		all[i] = s
	}
	return strings.Join(all, ",")
}
