package upstream

import (
	"fmt"
	"strings"

	"ration/integration/oracle"
)

// Contract is what the paths at and below Prefix must keep, all of them
// together. Prefix begins with a slash; "/" binds every path.
type Contract struct {
	Prefix string
	Rules  []oracle.Rule
}

// ParseContract reads "/search=4 concurrent, 100/1s". Without a prefix, as in
// "5/1s, 12/3s", the contract binds every path.
func ParseContract(text string) (Contract, error) {
	prefix := "/"
	if strings.HasPrefix(text, "/") {
		at, rest, ok := strings.Cut(text, "=")
		if !ok {
			return Contract{}, fmt.Errorf("upstream: contract %q has no = after its prefix", text)
		}
		prefix, text = at, rest
	}
	rules, err := oracle.ParseRules(text)
	if err != nil {
		return Contract{}, fmt.Errorf("upstream: contract of %s: %w", prefix, err)
	}
	return Contract{Prefix: strings.TrimRight(prefix, "/") + "/", Rules: rules}, nil
}

// binds says whether the contract counts a call to path.
func (c Contract) binds(path string) bool {
	return strings.HasPrefix(path+"/", c.Prefix)
}
