package algo

import (
	"fmt"
	"strings"
)

// Calls is the unit of a rule that names none. It may be written, and is not
// remembered: such a rule has the empty unit.
const Calls = "call"

// MaxUnitLen is the longest name of a unit, in bytes.
const MaxUnitLen = 32

// UnitRemedy says what the name of a unit has to be.
const UnitRemedy = "a name is 1 to 32 of a-z, 0-9, _ and -, and begins with a letter"

// UnitFault says what is wrong with the name of a unit, or nothing. A name is 1
// to MaxUnitLen of a-z, 0-9, "_" and "-", and begins with a letter.
func UnitFault(name string) string { return NameFault("unit", name) }

// NameFault says what is wrong with a name of the kind that units have, or nothing; what
// is what it names.
func NameFault(what, name string) string {
	switch {
	case name == "":
		return fmt.Sprintf("the name of the %s is missing", what)
	case len(name) > MaxUnitLen:
		return fmt.Sprintf("the %s %.40q has %d bytes, at most %d are allowed", what, name, len(name), MaxUnitLen)
	case name[0] < 'a' || name[0] > 'z':
		return fmt.Sprintf("the %s %q does not begin with one of a-z", what, name)
	}
	for _, r := range name {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789_-", r) {
			return fmt.Sprintf("the %s %q has a %q", what, name, r)
		}
	}
	return ""
}

// unit reads what follows "unit".
func (p *parser) unit() error {
	const remedy = "write unit=NAME, such as unit=tokens; " + UnitRemedy
	if !p.accept('=') {
		return p.fail(p.column(), remedy, `"=" is missing where %s is`, p.found())
	}
	column := p.column()
	name := p.field()
	if fault := UnitFault(name); fault != "" {
		return p.fail(column, remedy, "%s", fault)
	}
	if name != Calls {
		p.Unit = name
	}
	return nil
}
