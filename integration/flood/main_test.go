package flood_test

import "os"

// many is the short form of a number, or the full one under RATION_PROOF=1.
func many(short, full int) int {
	if os.Getenv("RATION_PROOF") == "1" {
		return full
	}
	return short
}
