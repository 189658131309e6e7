package algo

import "testing"

func TestSum(t *testing.T) {
	t.Run("of three", func(t *testing.T) {
		if got := Sum(1, 2, 3); got != 6 {
			t.Fatalf("got %d", got)
		}
	})
}

func TestLittle(t *testing.T) {
	if got := Sum(); got != 0 {
		t.Fatalf("got %d", got)
	}
}
