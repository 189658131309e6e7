package tsc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestACounterIsSteadyWhereEveryProcessorAndTheKernelSaySo(t *testing.T) {
	const steady = "flags\t\t: fpu tsc constant_tsc rdtscp nonstop_tsc\n"
	for cpuinfo, want := range map[string]bool{
		"processor\t: 0\n" + steady:                 true,
		steady + steady:                             true,
		steady + "flags\t\t: fpu tsc nonstop_tsc\n": false,
		"flags\t\t: fpu tsc constant_tsc\n":         false,
		"flags\t\t: no_constant_tsc nonstop_tsc\n":  false,
		"": false,
	} {
		require.Equal(t, want, promised([]byte(cpuinfo)), "%q", cpuinfo)
	}
	for source, want := range map[string]bool{
		"tsc\n": true, "kvm-clock \n": true, "hyperv_clocksource_tsc_page\n": true,
		"hpet\n": false, "acpi_pm\n": false, "xen\n": false, "": false,
	} {
		require.Equal(t, want, taken([]byte(source)), "%q", source)
	}
}
