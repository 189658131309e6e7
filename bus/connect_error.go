package bus

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"ration/lease"
)

// away says that nobody answered, as opposed to somebody who refused or a file
// that is missing.
func away(err error) bool {
	var network *net.OpError
	switch {
	case errors.As(err, &network):
		return network.Op != "remote error" // which is what TLS calls an alert
	case errors.Is(err, nats.ErrTLS):
		return false
	}
	return errors.Is(err, nats.ErrNoServers) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, io.EOF)
}

// connectError says what a failure to connect means, and what to do.
func connectError(url string, wait time.Duration, err error) error {
	where := Redacted(url)
	var alert *net.OpError
	switch {
	case unauthorized(err):
		return &SettingError{fmt.Errorf("%w: %s refuses the credentials (%w)", ErrPermission, where, err),
			"give those it knows, by Creds, User, Token or NKey", "give those it knows, by --creds, --user, --token or --nkey"}
	case away(err):
		return &SettingError{fmt.Errorf("%w: no NATS server at %s within %v (%s)", lease.ErrNoCoordinator, where, wait, absence(err)),
			"start a coordinator, which brings one, or give Connect another URL",
			"start a coordinator, which brings one, or name another with --nats"}
	case errors.Is(err, nats.ErrSecureConnWanted):
		return &SettingError{fmt.Errorf("bus: the NATS server at %s speaks no TLS (%w)", where, err),
			"write nats:// in its URL, and leave Cert and CA out", "write nats:// in its URL, and leave --tlscert and --tlsca out"}
	case errors.Is(err, nats.ErrTLS), errors.As(err, &alert):
		return &SettingError{fmt.Errorf("bus: TLS with the NATS server at %s fails (%w)", where, err),
			"name whom to trust in CA, and a certificate to show in Cert and Key",
			"name whom to trust with --tlsca, and a certificate to show with --tlscert and --tlskey"}
	case errors.Is(err, nats.ErrNoInfoReceived), strings.Contains(where, "ws://"), strings.Contains(where, "wss://"):
		return &SettingError{fmt.Errorf("%w: what answers at %s is no NATS server, or not of that kind", lease.ErrNoCoordinator, where),
			"give Connect the URL of one", "name one with --nats"}
	}
	return fmt.Errorf("bus: connecting to %s: %w; look at the URL, and at the files that are named for credentials and TLS", where, err)
}

// unauthorized says that NATS does not take who connects.
func unauthorized(err error) bool {
	for _, refusal := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

const noAnswer = "no answer"

// absence says how it showed that nobody is there.
func absence(err error) string {
	var network *net.OpError
	var name *net.DNSError
	switch {
	case errors.Is(err, nats.ErrNoServers): // all that nats.go says of it
		return "connection refused"
	case errors.As(err, &name):
		return name.Error()
	case errors.Is(err, nats.ErrTimeout), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, net.ErrClosed),
		errors.As(err, &network) && network.Timeout():
		return noAnswer
	case errors.Is(err, io.EOF):
		return "it closes the connection"
	case network != nil:
		return network.Err.Error()
	}
	return err.Error()
}
