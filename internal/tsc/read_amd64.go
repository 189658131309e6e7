package tsc

// Read is the counter, in ticks, at an instant after all that was loaded and all
// steps in memory that were made before. It is always 0 where it cannot be Steady.
func Read() uint64
