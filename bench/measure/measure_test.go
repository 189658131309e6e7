package measure_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"ration/bench/measure"
)

// TestCasesTakeTurns: no case has its rounds in one piece.
func TestCasesTakeTurns(t *testing.T) {
	var order string
	note := func(name string) measure.Case {
		return measure.Case{Name: name, Run: func(n int) error {
			if len(order) == 0 || order[len(order)-1:] != name {
				order += name
			}
			time.Sleep(time.Duration(n) * 20 * time.Microsecond)
			return nil
		}}
	}
	results, err := measure.Rounds(3, 4*time.Millisecond, note("a"), note("b"))
	if err != nil {
		t.Fatal(err)
	}
	if order != "abababab" { // once to find the size, then three rounds
		t.Fatalf("the cases ran as %q", order)
	}
	if results[0].Each < 20*time.Microsecond || results[0].PerSecond > 50_000 {
		t.Fatalf("20 us or more a piece, and it says %v, %v a second", results[0].Each, results[0].PerSecond)
	}
}

// TestRatiosAreOfTheSameRound: a machine that is slow for a round is so for both.
func TestRatiosAreOfTheSameRound(t *testing.T) {
	round := map[string]time.Duration{}
	slow := func(name string, times time.Duration) measure.Case {
		return measure.Case{Name: name, Run: func(n int) error {
			round[name]++
			time.Sleep(time.Duration(n) * times * (1 + 3*(round[name]%2)) * 20 * time.Microsecond)
			return nil
		}}
	}
	results, err := measure.Rounds(7, 40*time.Millisecond, slow("a", 1), slow("b", 3))
	if err != nil {
		t.Fatal(err)
	}
	if got := results[1].Over(results[0]); got < 2 || got > 4 {
		t.Fatalf("b takes 3 times as long as a in each round, and %v over all", got)
	}
}

// TestAnErrorEndsTheMeasurement, and names the case.
func TestAnErrorEndsTheMeasurement(t *testing.T) {
	_, err := measure.Rounds(3, time.Second, measure.Case{Name: "a", Run: func(int) error { return io.ErrClosedPipe }})
	if !errors.Is(err, io.ErrClosedPipe) || err.Error() != "a: "+io.ErrClosedPipe.Error() {
		t.Fatal(err)
	}
}

func TestBoundsSayWhatIsShort(t *testing.T) {
	var out bytes.Buffer
	b := measure.Bounds{To: &out}
	b.AtMost("quick", 0.4, 0.4)
	b.AtMost("slow", 0.41, 0.4)
	b.AtLeast("many", 0.75, 0.75)
	b.AtLeast("few", 0.7, 0.75)
	want := "ratio quick 0.400 0.4 ok\nratio slow 0.410 0.4 short\nratio many 0.750 0.75 ok\nratio few 0.700 0.75 short\n"
	if out.String() != want || b.Short != 2 {
		t.Fatalf("%d short of:\n%s", b.Short, out.String())
	}
}
