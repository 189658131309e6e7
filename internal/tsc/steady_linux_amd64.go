package tsc

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Steady says that the counter runs at one rate, alike on all processors and in
// idle ones, and that time.Now follows the same clock as the system: within a
// testing/synctest bubble it does not. It is safe for concurrent use.
func Steady() bool { return trusted() && !faked() }

// trusted says that the processor promises such a counter, and that the kernel
// found it so: it takes its own time from it.
var trusted = sync.OnceValue(func() bool {
	source, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	if err != nil {
		return false
	}
	cpus, err := os.ReadFile("/proc/cpuinfo")
	return err == nil && promised(cpus) && taken(source)
})

// taken says that a clock source of the kernel is the counter: itself, or through
// a page in which a hypervisor says how to scale it.
func taken(source []byte) bool {
	switch string(bytes.TrimSpace(source)) {
	case "tsc", "kvm-clock", "hyperv_clocksource_tsc_page":
		return true
	}
	return false
}

// promised says that every processor has a counter whose rate is constant, also
// while it idles.
func promised(cpuinfo []byte) bool {
	seen := false
	for line := range bytes.Lines(cpuinfo) {
		if !bytes.HasPrefix(line, []byte("flags")) {
			continue
		}
		seen = true
		for _, flag := range []string{"constant_tsc", "nonstop_tsc"} {
			if !slices.Contains(strings.Fields(string(line)), flag) {
				return false
			}
		}
	}
	return seen
}

// faked says that time.Now is not the system's clock. The two are read one after
// the other, and an hour apart they are nobody's who reads both at once.
func faked() bool {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &ts); err != nil {
		return true
	}
	return time.Until(time.Unix(ts.Unix())).Abs() > time.Hour
}
