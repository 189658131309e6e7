package nginx

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// proof says to play at full length, and that nginx has to be there.
var proof = os.Getenv("RATION_PROOF") == "1"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// length is how many calls a test makes.
type length struct{ little, usual, full int }

func (l length) calls() int {
	switch {
	case proof:
		return l.full
	case testing.Short():
		return l.little
	}
	return l.usual
}
