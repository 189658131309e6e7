package algo

import (
	"fmt"
	"time"
	"unicode"
)

const (
	example    = `write a rule such as "10/1s", "4 concurrent" or "unlimited"`
	knownWords = "known words: sliding, fixed, bucket, counter, pace, burst=N, tz=ZONE, unit=NAME"
	knownUnits = "known units: ns, us, ms, s, m, h, d, y, and for fixed windows w and mo"
)

// ParseRule reads a rule as people write it:
//
//	10/1s   10/s   10/second   500 per minute   1000/1h30m   10/1s sliding
//	10000/1d fixed   10000/day fixed tz=Europe/Berlin   1/1w fixed   1/1mo fixed
//	100/1m bucket   100/1m bucket burst=50
//	1000/1h counter
//	10/1s pace
//	200000/1m unit=tokens
//	4 concurrent
//	unlimited
//
// Words after the period may come in any order, each once. Numbers are whole and
// may have single underscores between digits (10_000); limit and burst go up to
// MaxLimit. Words are in lower case; blanks between pieces do not matter. A
// period without a number is one of its unit, and several units go from large to
// small. It is from 1 ns to MaxPeriod; "1d" is 24 h for sliding and a calendar
// day for fixed windows, which are otherwise under a day or "1w" or "1mo"; "1y"
// is 365 days.
//
// A rule counts calls unless it names another unit: 1 to 32 of a-z, 0-9, "_" and
// "-", beginning with a letter.
//
// A time zone is UTC, which need not be written, or named as in the IANA database.
// Its data is looked up on the machine and else in the program, so that a rule
// that was read can be compiled; nothing else here looks outside.
//
// The error is a *RuleError.
func ParseRule(text string) (Rule, error) {
	p := parser{scanner: scanner{text: text, runes: []rune(text)}}
	if err := p.rule(); err != nil {
		return Rule{}, err
	}
	return p.Rule, nil
}

// parser fills in a Rule, and remembers where things stood that can be judged
// only when the whole is known. A column of 0 means that it was not written.
type parser struct {
	scanner
	Rule
	kindColumn   int
	burstColumn  int
	zoneColumn   int
	unitColumn   int
	periodColumn int
	// written is the period as it stands in the text.
	written string
	// calendar is the unit of a period that only fixed windows may have.
	calendar unit
}

func (p *parser) rule() error {
	if p.end() {
		return p.fail(1, example, "the rule is empty")
	}
	from := p.pos
	if p.word() == "unlimited" {
		p.Kind = Unlimited
		return p.nothingMore("unlimited")
	}
	p.pos = from
	if unicode.IsLetter(p.peek()) {
		return p.fail(p.column(), example, "the limit is missing where %s is", p.found())
	}
	var err error
	if p.Limit, err = p.number("the limit", MaxLimit); err != nil {
		return err
	}
	if !p.accept('/') {
		column, found := p.column(), p.found()
		switch p.word() {
		case "per":
		case "concurrent":
			p.Kind = Concurrent
			return p.nothingMore("concurrent")
		default:
			return p.fail(column, example, `"/", "per" or "concurrent" is missing where %s is`, found)
		}
	}
	if err := p.period(); err != nil {
		return err
	}
	for !p.end() {
		if err := p.option(); err != nil {
			return err
		}
	}
	return p.complete()
}

// nothingMore refuses whatever follows a word that ends a rule.
func (p *parser) nothingMore(word string) error {
	if p.end() {
		return nil
	}
	return p.fail(p.column(), "leave it out", "%s follows %q, which takes neither period nor option", p.found(), word)
}

// period reads "s", "1s", "1h30m" or "1 hour 30 minutes".
func (p *parser) period() error {
	p.periodColumn = p.column()
	smallest := time.Duration(0)
	for first := true; first || isDigit(p.peek()); first = false {
		n := int64(1)
		column := p.column()
		if r := p.peek(); isDigit(r) || r == '-' || r == '+' || r == '.' {
			var err error
			if n, err = p.number("the period", int64(MaxPeriod)); err != nil {
				return err
			}
		}
		unitColumn, found := p.column(), p.found()
		word := p.word()
		u, ok := units[word]
		switch {
		case word == "":
			return p.fail(unitColumn, knownUnits, "a unit of time is missing where %s is", found)
		case !ok:
			return p.fail(unitColumn, knownUnits, "unknown unit %s", found)
		case n == 0:
			return p.fail(column, "write 1 or more", "the period is 0")
		case !first && (u.calendar || p.calendar != unit{}):
			return p.fail(column, "write one number and one unit", "calendar weeks and months go with no other unit")
		case !first && u.length >= smallest:
			return p.fail(column, `write units from large to small, each once, as in "1h30m"`, "%q follows a unit that is no larger", word)
		case u.calendar && n != 1:
			return p.fail(column, "write 1"+word, "a period of %d calendar units", n)
		case u.length > 0 && (n > int64(MaxPeriod/u.length) || time.Duration(n)*u.length > MaxPeriod-p.Period.Length):
			return p.fail(column, "write at most 3650d", "the period is too long")
		}
		smallest = u.length
		p.Period.Length += time.Duration(n) * u.length
		p.Period.Months = u.months
		if u.calendar {
			p.calendar = u
		}
		p.written = string(p.runes[p.periodColumn-1 : p.pos])
	}
	return nil
}

// option reads one word after the period.
func (p *parser) option() error {
	column, found := p.column(), p.found()
	switch word := p.word(); word {
	case "sliding", "fixed", "bucket", "counter", "pace":
		if p.kindColumn > 0 {
			return p.fail(column, "keep one of them", "%q follows %q", word, p.Kind)
		}
		p.kindColumn = column
		p.Kind = map[string]Kind{"sliding": Sliding, "fixed": Fixed, "bucket": Bucket, "counter": Counter, "pace": Pace}[word]
		return nil
	case "burst":
		if p.burstColumn > 0 {
			return p.fail(column, "keep one of them", "burst is written twice")
		}
		p.burstColumn = column
		if !p.accept('=') {
			return p.fail(p.column(), "write burst=N", `"=" is missing where %s is`, p.found())
		}
		var err error
		p.Burst, err = p.number("the burst", MaxLimit)
		return err
	case "tz":
		if p.zoneColumn > 0 {
			return p.fail(column, "keep one of them", "tz is written twice")
		}
		p.zoneColumn = column
		return p.zone()
	case "unit":
		if p.unitColumn > 0 {
			return p.fail(column, "keep one of them", "unit is written twice")
		}
		p.unitColumn = column
		return p.unit()
	case "concurrent":
		return p.fail(column, fmt.Sprintf(`write "%d concurrent" without a period`, p.Limit), "concurrency has no period")
	case "guard":
		return p.fail(column, "write it beside the rules of the limit", "a rule has no guard")
	default:
		return p.fail(column, knownWords, "unknown word %s", found)
	}
}

// zone reads what follows "tz". UTC is what is meant where nothing is written,
// and so is not remembered.
func (p *parser) zone() error {
	const remedy = "write tz=UTC, or a name such as tz=Europe/Berlin"
	if !p.accept('=') {
		return p.fail(p.column(), remedy, `"=" is missing where %s is`, p.found())
	}
	column := p.column()
	name := p.field()
	switch {
	case name == "":
		return p.fail(column, remedy, "the time zone is missing")
	case !knownZone(name):
		return p.fail(column, remedy, "the time zone %s is unknown", quote(name))
	case name != "UTC":
		p.Zone = name
	}
	return nil
}

// complete fills in defaults and checks what depends on the kind.
func (p *parser) complete() error {
	if p.kindColumn == 0 {
		p.Kind = Sliding
	}
	switch {
	case p.burstColumn > 0 && p.Kind != Bucket:
		return p.fail(p.burstColumn, `add "bucket", or leave it out`, "burst belongs to bucket, and this rule is %s", p.Kind)
	case p.burstColumn > 0 && p.Burst == 0 && p.Limit > 0:
		return p.fail(p.burstColumn, "write burst=1 or more, or a limit of 0", "a bucket of burst=0 never grants anything")
	case p.zoneColumn > 0 && p.Kind != Fixed:
		return p.fail(p.zoneColumn, `add "fixed", or leave it out`, "tz belongs to fixed, and this rule is %s", p.Kind)
	case p.unitColumn > 0 && p.Kind == Pace && p.Unit != "":
		return p.fail(p.unitColumn, "leave it out", "a pace keeps calls apart, and counts nothing else")
	case p.calendar.calendar && p.Kind != Fixed:
		return p.fail(p.periodColumn, fmt.Sprintf(`write %s, or add "fixed"`, p.calendar.plain), "calendar weeks and months are for fixed windows, and this rule is %s", p.Kind)
	case p.Kind == Fixed && !fixable(p.Period.Length):
		return p.fail(p.periodColumn, `write a period under a day, 1d, 1w or 1mo, or leave out "fixed"`, "the calendar has no window of %s", p.written)
	case p.Kind == Bucket && p.burstColumn == 0:
		p.Burst = p.Limit
	}
	return nil
}
