package system

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ration/integration/harness"
)

var fullFlag = flag.Bool("full", os.Getenv("RATION_PROOF") == "1", "play everything at full length")

// full says whether to play at full length.
func full() bool { return *fullFlag }

// scaled gives the long one at full length, else the short one.
func scaled[T any](short, long T) T {
	if full() {
		return long
	}
	return short
}

// The test binary also plays the processes that the tests start.
func TestMain(m *testing.M) {
	if os.Getenv("PLAY") == "holder" {
		os.Exit(playHolder(os.Args[1:]))
	}
	os.Exit(harness.Main(tidy{m}))
}

// tidy runs the tests and then looks whether they left a goroutine.
type tidy struct{ m *testing.M }

func (t tidy) Run() int {
	code := t.m.Run()
	http.DefaultClient.CloseIdleConnections()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "after all tests:", err)
			return 1
		}
	}
	return code
}

// proves waits until a condition holds. It bounds a test that hangs.
func proves(t testing.TB, what string, holds func() error) {
	t.Helper()
	harness.New(t).Until(what, holds)
}

// passed says, as a condition, that an instant has passed.
func passed(at time.Time) func() error {
	return func() error {
		if left := time.Until(at); left > 0 {
			return fmt.Errorf("%v are left", left)
		}
		return nil
	}
}
