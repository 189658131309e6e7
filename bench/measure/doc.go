// Package measure times things beside each other: in rounds that take turns, so
// that what else the machine does falls on all of them alike, and by medians.
// Only ratios of one run say anything about another machine.
package measure
