// Package algo is sources that mutants are made of.
package algo

// Sum adds.
func Sum(xs ...int) int {
	n := 0
	for i := range xs {
		n += xs[i]
	}
	return n
}
