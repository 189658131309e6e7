package algo

import "fmt"

// RuleError tells what is wrong with a rule's text, where, and what to write
// instead.
type RuleError struct {
	// Text is the whole text.
	Text string
	// Column is where the trouble starts, in characters, from 1. Where
	// something is missing at the end it is one past the last character.
	Column int
	// Problem says what is wrong.
	Problem string
	// Remedy says what to write instead.
	Remedy string
}

func (e *RuleError) Error() string {
	return fmt.Sprintf("algo: rule %.80q, column %d: %s; %s", e.Text, e.Column, e.Problem, e.Remedy)
}
