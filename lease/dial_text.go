package lease

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"ration/algo"
)

// MarshalText writes a dial for a mirror: numbers of nanoseconds, of the offset, of
// Apart and High, and two for each widening. The zero Dial is empty.
func (d Dial) MarshalText() ([]byte, error) {
	if d.Offset == 0 && d.Apart == 0 && d.High == 0 && len(d.Widened) == 0 {
		return nil, nil
	}
	text := strconv.AppendInt(nil, int64(d.Offset), 10)
	add := func(n int64) { text = strconv.AppendInt(append(text, ' '), n, 10) }
	add(int64(d.Apart))
	add(int64(d.High))
	for _, w := range d.Widened {
		add(int64(w.At))
		add(int64(w.Apart))
	}
	return text, nil
}

// UnmarshalText reads what MarshalText wrote.
func (d *Dial) UnmarshalText(text []byte) error {
	*d = Dial{}
	var numbers []int64
	for _, field := range strings.Fields(string(text)) {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return fmt.Errorf("lease: dial: %w", err)
		}
		numbers = append(numbers, n)
	}
	if len(numbers) == 0 {
		return nil
	}
	if len(numbers) < 3 || len(numbers)%2 == 0 {
		return fmt.Errorf("lease: dial of %d numbers, not of 3 and 2 for each widening", len(numbers))
	}
	d.Offset, d.Apart, d.High = time.Duration(numbers[0]), apart(time.Duration(numbers[1]), 0), time.Duration(numbers[2])
	for i := 3; i < len(numbers); i += 2 {
		d.Widened = append(d.Widened, Widening{algo.Instant(numbers[i]), apart(time.Duration(numbers[i+1]), 0)})
	}
	return nil
}
