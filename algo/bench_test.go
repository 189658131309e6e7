package algo_test

import (
	"testing"
	"time"
)

func BenchmarkTakeSettle(b *testing.B) {
	for _, text := range []string{
		"100/1s", "100000/1s", "10000/1d fixed", "10000/1mo fixed", "10000/1d fixed tz=Europe/Berlin",
		"100000/1s bucket", "100000/1s counter", "100000/1s pace", "4 concurrent", "unlimited",
	} {
		b.Run(text, func(b *testing.B) {
			spec := exact(b, text)
			w := spec.Window(at)
			now := at
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(10 * time.Microsecond)
				if w.Free(now) > 0 {
					w.Take(now, 1)
					w.Settle(now, 1, now)
				}
			}
		})
	}
}

func BenchmarkTakeSettleUnderGuard(b *testing.B) {
	for _, text := range []string{"100/1s", "100000/1s fixed", "100000/1s bucket", "100000/1s counter", "4 concurrent"} {
		b.Run(text, func(b *testing.B) {
			spec := guarded(b, text, 50*time.Millisecond)
			w := spec.Window(at)
			now := at
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(10 * time.Microsecond)
				if w.Free(now) > 0 {
					w.Take(now, 1)
					w.Settle(now, 1, now)
				}
			}
		})
	}
}

func BenchmarkWait(b *testing.B) {
	for _, text := range []string{"100/1s", "100000/1s", "10000/1d fixed", "10000/1d fixed tz=Europe/Berlin", "100000/1s bucket", "100000/1s counter"} {
		b.Run(text, func(b *testing.B) {
			spec := exact(b, text)
			w := spec.Window(at)
			now := at
			for w.Free(now) > 0 {
				now = now.Add(5 * time.Microsecond)
				n := min(w.Free(now), max(1, spec.Max()/20_000))
				w.Take(now, n)
				w.Settle(now, n, now)
				if now > at.Add(990*time.Millisecond) {
					break
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				w.Wait(now, spec.Max(), nil)
			}
		})
	}
}
