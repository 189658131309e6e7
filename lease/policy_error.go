package lease

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// maxPolicyErrors is how many errors of one file are reported together.
const maxPolicyErrors = 10

// PolicyError is one thing wrong with a policy, and where. ParsePolicy joins
// several of them into one error, in the order of their places.
type PolicyError struct {
	File string
	// Line and Column count from 1; Column counts characters.
	Line   int
	Column int
	// Problem says what is wrong, Remedy what to do about it.
	Problem string
	Remedy  string
}

func (e *PolicyError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s; %s", e.File, e.Line, e.Column, e.Problem, e.Remedy)
}

// place is a position in the text of a policy, counted from 1 in characters.
type place struct {
	line   int
	column int
}

// complaints collects what is wrong with one file.
type complaints struct {
	file string
	list []*PolicyError
}

func (c *complaints) add(at place, problem, remedy string) {
	c.list = append(c.list, &PolicyError{c.file, at.line, at.column, problem, remedy})
}

// err joins the first complaints by place. It is nil if there is none.
func (c *complaints) err() error {
	slices.SortStableFunc(c.list, func(a, b *PolicyError) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	var all []error
	for i, e := range c.list {
		if i == maxPolicyErrors && len(c.list) > maxPolicyErrors+1 { // one more takes no more room than to say so
			e = &PolicyError{c.file, e.Line, e.Column,
				fmt.Sprintf("%d more errors from here on", len(c.list)-i), "correct those above first"}
			all = append(all, e)
			break
		}
		all = append(all, e)
	}
	return errors.Join(all...)
}
