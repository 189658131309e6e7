package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"ration/cmd/internal/cli"
	"ration/lease"
)

const (
	barWidth = 10
	// maxHolders is how many holders of a key are named.
	maxHolders = 8
)

// drawing lays a status out for a screen of so many columns.
type drawing struct {
	width  int
	colour bool
}

func (d drawing) draw(doc *document, key string) []byte {
	var b bytes.Buffer
	for _, line := range leadership(doc) {
		fmt.Fprintf(&b, "%s\n", d.fit(line))
	}
	fmt.Fprintf(&b, "%s\n", d.fit(fmt.Sprintf("%s %s %s; %s", cli.Plural(doc.Leases, "lease"), verb(doc.Leases, "holds", "hold"), amount{Tokens: doc.Held.Tokens, Slots: doc.Held.Slots},
		cli.Plural(doc.Waiting, "request")+verb(doc.Waiting, " waits", " wait"))))
	if doc.Problem != "" {
		fmt.Fprintf(&b, "%s\n", d.fit("the policy file is not taken: "+doc.Problem))
	}
	for _, line := range append(behind(doc.Partitions), apart(doc.Clock)...) {
		fmt.Fprintf(&b, "%s\n", d.fit(line))
	}
	if len(doc.Keys) == 0 {
		if key != "" {
			fmt.Fprintf(&b, "%s\n", d.fit("nothing is held, spent or waited for on "+cli.Printable(key, d.width)))
			if doc.Unknown {
				fmt.Fprintln(&b, "no limit names that key: it is refused")
			}
		} else {
			fmt.Fprintln(&b, "nothing is held, spent or waited for")
		}
		return b.Bytes()
	}
	columns := d.columns(doc)
	fmt.Fprintf(&b, "\n%s\n", d.paint(dim, columns.header()))
	for i := range doc.Keys {
		d.drawKey(&b, &doc.Keys[i], columns)
	}
	if doc.More > 0 {
		fmt.Fprintf(&b, "and %s; name one to see it\n", cli.Plural(doc.More, "further key"))
	}
	return b.Bytes()
}

// apart tells what fixed rules do about a wall clock that was set.
func apart(c *clockState) []string {
	if c == nil {
		return nil
	}
	ahead, where := time.Duration(c.Ahead), "ahead of"
	if ahead < 0 {
		ahead, where = -ahead, "behind"
	}
	return []string{
		fmt.Sprintf("clock apart: the wall clock is %v %s calendar time;", lease.Rounded(ahead), where),
		fmt.Sprintf("until it is followed, guards of fixed rules are %v wider", lease.Rounded(time.Duration(c.Wider))),
	}
}

func (d drawing) drawKey(b *bytes.Buffer, k *keyState, columns columns) {
	waiting := ""
	if k.Waiting > 0 {
		waiting = fmt.Sprintf("  %d waiting", k.Waiting)
	}
	fmt.Fprintf(b, "%s%s\n", d.paint(bold, cli.Printable(k.name(), d.width-len(waiting))), waiting)
	if k.Pause != nil {
		for _, line := range k.Pause.lines() {
			fmt.Fprintln(b, d.paint(red, d.fit(line)))
		}
	}
	for i := range k.Windows {
		w := &k.Windows[i]
		cells := row(w)
		bar := ""
		if columns.bar {
			bar = "  " + d.bar(w)
		}
		fmt.Fprintf(b, "%s%s%s\n", columns.left(cells), bar, columns.right(cells))
		if w.Shadow {
			fmt.Fprintln(b, d.fit(fmt.Sprintf("    in shadow: would have refused %d", w.WouldRefuse)))
		}
	}
	for _, line := range append(d.classes(k.Classes), d.holders(k.Holders)...) {
		fmt.Fprintln(b, line)
	}
}

// classes tells of the classes of a line, each with its own line of text.
func (d drawing) classes(all []classState) (lines []string) {
	for _, c := range all {
		waiting := fmt.Sprintf("%d waiting", c.Waiting)
		if c.Bound != nil {
			waiting = fmt.Sprintf("%d of %d waiting", c.Waiting, *c.Bound)
		}
		lines = append(lines, d.fit(fmt.Sprintf("  class %s: %s, %d granted, %d refused", c.Class, waiting, c.Granted, c.Refused)))
	}
	return lines
}

// bar shows where a window's tokens are: spent, held, free. What is there at
// all gets at least one mark.
func (d drawing) bar(w *windowState) string {
	if w.Limit == nil || *w.Limit <= 0 {
		return strings.Repeat(" ", barWidth)
	}
	share := func(n int64) int {
		if n <= 0 {
			return 0
		}
		return min(barWidth, max(1, int(float64(n)/float64(*w.Limit)*barWidth+0.5)))
	}
	spent := share(w.Spent)
	held := min(share(w.Held), barWidth-spent)
	if held == 0 && w.Held > 0 {
		spent, held = spent-1, 1
	}
	return d.paint(red, strings.Repeat("█", spent)) + d.paint(yellow, strings.Repeat("▒", held)) +
		d.paint(green, strings.Repeat("·", barWidth-spent-held))
}

func (d drawing) holders(all []holderState) []string {
	if len(all) == 0 {
		return nil
	}
	var items []string
	for i, h := range all {
		if i == maxHolders {
			items = append(items, fmt.Sprintf("and %d more", len(all)-i))
			break
		}
		item := fmt.Sprintf("%s %v", cli.Printable(h.Holder, 40), h.amount)
		items = append(items, cli.Printable(item, d.width-len("  held by ,")))
	}
	var lines []string
	line := "  held by "
	for i, item := range items {
		if i < len(items)-1 {
			item += ","
		}
		if i > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(item) > d.width {
			lines = append(lines, line)
			line = "         "
		}
		if i > 0 {
			line += " "
		}
		line += item
	}
	return append(lines, line)
}

// fit cuts a line to the screen.
func (d drawing) fit(line string) string { return cli.Printable(line, d.width) }

// Codes of colour and weight.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (d drawing) paint(code, text string) string {
	if !d.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// columns is how wide the columns of windows are.
type columns struct {
	rule, free, held, spent, limit int
	bar, full                      bool
}

// columns makes the columns as wide as their texts, and leaves out the bar and
// the last one where the screen is too narrow.
func (d drawing) columns(doc *document) columns {
	c := columns{rule: len("KEY / RULE"), free: len("FREE"), held: len("HELD"), spent: len("SPENT"), limit: len("LIMIT"), bar: true, full: true}
	full := len("FULL IN")
	for i := range doc.Keys {
		for j := range doc.Keys[i].Windows {
			r := row(&doc.Keys[i].Windows[j])
			c.rule = max(c.rule, 2+utf8.RuneCountInString(r.rule))
			c.free = max(c.free, len(r.free))
			c.held = max(c.held, len(r.held))
			c.spent = max(c.spent, len(r.spent))
			c.limit = max(c.limit, len(r.limit))
			full = max(full, len(r.full))
		}
	}
	numbers := c.free + c.held + c.spent + c.limit + 4*2
	c.full = c.rule+numbers+2+full <= d.width
	c.bar = c.rule+numbers+2+barWidth <= d.width && (!c.full || c.rule+numbers+2+full+2+barWidth <= d.width)
	c.rule = max(2*len("RULE"), min(c.rule, d.width-numbers)) // numbers of 16 digits leave 8
	return c
}

// cells is the texts of one window.
type cells struct{ rule, free, held, spent, limit, full string }

func row(w *windowState) cells {
	rule := w.Rule
	if w.Plan != "" {
		rule += " of " + w.Plan
	}
	c := cells{rule: rule, free: "-", limit: "-", held: strconv.FormatInt(w.Held, 10), spent: strconv.FormatInt(w.Spent, 10), full: "-"}
	if w.Limit != nil && w.Free != nil {
		c.free, c.limit = strconv.FormatInt(*w.Free, 10), strconv.FormatInt(*w.Limit, 10)
	}
	if w.FullIn > 0 {
		c.full = short(time.Duration(w.FullIn))
	}
	return c
}

func (c columns) header() string {
	title, bar := "KEY / RULE", ""
	if c.rule < len(title) {
		title = "RULE"
	}
	if c.bar {
		bar = fmt.Sprintf("  %-*s", barWidth, "USE")
	}
	return fmt.Sprintf("%-*s", c.rule, title) + bar + c.right(cells{free: "FREE", held: "HELD", spent: "SPENT", limit: "LIMIT", full: "FULL IN"})
}

func (c columns) left(t cells) string {
	rule := cli.Printable(t.rule, c.rule-2)
	return "  " + rule + strings.Repeat(" ", max(0, c.rule-2-utf8.RuneCountInString(rule)))
}

func (c columns) right(t cells) string {
	line := fmt.Sprintf("  %*s  %*s  %*s  %*s", c.free, t.free, c.held, t.held, c.spent, t.spent, c.limit, t.limit)
	if c.full {
		line += "  " + t.full
	}
	return line
}

// short gives a duration with about three digits.
func short(d time.Duration) string {
	switch {
	case d >= time.Minute:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(10 * time.Millisecond)
	case d >= 10*time.Millisecond:
		d = d.Round(time.Millisecond)
	}
	return d.String()
}

// maxUnits is how many units besides calls are named; of more the number is told.
const maxUnits = 2

func (a amount) String() string {
	parts := []string{cli.Plural(a.Tokens, "token")}
	if a.Slots > 0 {
		parts = append(parts, cli.Plural(a.Slots, "slot"))
		if a.Tokens == 0 {
			parts = parts[1:]
		}
	}
	for i, unit := range slices.Sorted(maps.Keys(a.Units)) {
		if i == maxUnits {
			parts = append(parts, cli.Plural(len(a.Units)-i, "further unit"))
			break
		}
		parts = append(parts, fmt.Sprintf("%d unit=%s", a.Units[unit], unit))
	}
	return strings.Join(parts, " and ")
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
