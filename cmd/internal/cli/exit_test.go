package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"ration/bus"
	"ration/lease"
)

func TestEachFailureHasItsExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, Done},
		{errors.New("disk full"), Failed},
		{Misuse("--x is below 0"), Misused},
		{fmt.Errorf("asking: %w", lease.ErrBadKey), Misused},
		{fmt.Errorf("asking: %w", lease.ErrNever), Refused},
		{fmt.Errorf("asking: %w", lease.ErrUnknownKey), Refused},
		{lease.ErrTooLate, TimedOut},
		{fmt.Errorf("asking: %w", lease.ErrPaused), TimedOut},
		{context.DeadlineExceeded, TimedOut},
		{fmt.Errorf("bus: %w", lease.ErrNoCoordinator), NoCoordinator},
		{errors.Join(lease.ErrNoCoordinator, context.DeadlineExceeded), NoCoordinator},
		{&Exit{Code: 130}, 130},
		{fmt.Errorf("closing: %w", &Exit{TimedOut, lease.ErrNoCoordinator}), TimedOut},
	} {
		require.Equal(t, c.want, Code(c.err), "%v", c.err)
	}
}

func TestErrorsAreToldOnceAndWithoutPackageNames(t *testing.T) {
	tell := func(err error) string {
		var b bytes.Buffer
		Finish("worker", err, Streams{Err: &b})
		return b.String()
	}
	require.Equal(t, "worker: connecting: no coordinator answers\n", tell(fmt.Errorf("ration: connecting: %w", lease.ErrNoCoordinator)))
	require.Equal(t, "worker: \"bus: x\" is no key\n", tell(errors.New(`lease: "bus: x" is no key`)))
	require.Equal(t, "worker: a\nb\n", tell(errors.Join(errors.New("bus: a"), errors.New("algo: b"))))
	require.Equal(t, "worker: connecting: no server; name another with --nats\n", tell(fmt.Errorf("bus: connecting: %w",
		&bus.SettingError{Err: errors.New("no server"), Remedy: "give Connect another", Flags: "name another with --nats"})))
	require.Empty(t, tell(nil))
	require.Empty(t, tell(&Exit{Code: Failed}), "it has been explained already")
}
