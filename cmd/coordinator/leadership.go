package main

import (
	"fmt"
	"strconv"
	"strings"

	"ration/cmd/internal/cli"
)

// leadership tells who leads which partitions, a line for each coordinator, and which
// have no leader.
func leadership(doc *document) []string {
	state := ""
	if doc.State == "memory" {
		state = ", state in memory"
	}
	if doc.Divided <= 1 {
		var p partition
		if len(doc.Partitions) > 0 {
			p = doc.Partitions[0]
		}
		return []string{fmt.Sprintf("%s leads cell %s, epoch %d%s%s", doc.Leader, doc.Cell, p.Epoch, revisions(doc), state)}
	}
	if len(doc.Partitions) == 1 { // that of the key
		p := doc.Partitions[0]
		of := fmt.Sprintf("partition %d of %d of cell %s", p.N, doc.Divided, doc.Cell)
		if p.Problem != "" {
			return []string{of + ": " + p.Problem}
		}
		return []string{fmt.Sprintf("%s leads %s, epoch %d%s%s", p.Leader, of, p.Epoch, revisions(doc), state)}
	}
	lines := []string{fmt.Sprintf("cell %s has %s%s%s", doc.Cell, cli.Plural(doc.Divided, "partition"), revisions(doc), state)}
	type who struct{ leader, problem string }
	var order []who
	numbers := map[who][]int{}
	for _, p := range doc.Partitions {
		w := who{p.Leader, p.Problem}
		if numbers[w] == nil {
			order = append(order, w)
		}
		numbers[w] = append(numbers[w], p.N)
	}
	for _, w := range order {
		line := w.leader + " leads " + ranges(numbers[w])
		if w.problem != "" {
			line = ranges(numbers[w]) + ": " + w.problem
		}
		lines = append(lines, line)
	}
	return lines
}

// revisions tells the revision of the policy in force, or the lowest and the highest while
// it is not the same everywhere.
func revisions(doc *document) string {
	low, high := uint64(0), doc.revision()
	for _, p := range doc.Partitions {
		if p.Policy > 0 && (low == 0 || p.Policy < low) {
			low = p.Policy
		}
	}
	switch {
	case high == 0: // it is not told
		return ""
	case low != high:
		return fmt.Sprintf(", policies %d to %d", low, high)
	}
	return fmt.Sprintf(", policy %d", high)
}

// ranges writes rising numbers, those that follow each other as a range.
func ranges(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		part := strconv.Itoa(numbers[i])
		if j > i {
			part += "-" + strconv.Itoa(numbers[j])
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ", ")
}
