package lease_test

import (
	"fmt"

	"ration/lease"
)

func ExampleParsePolicy() {
	p, err := lease.ParsePolicy("ration.yaml", []byte(`
limits:
  - key: "{account}"
    rules: [500 per minute]
  - key: "{account}/search"
    rules: [10/s, 4 concurrent]
    guard: 50ms
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range p.Match("acme/search/images") {
		fmt.Println(m.Prefix, "is limited to", m.Limit.Rules)
	}
	// Output:
	// acme is limited to [500/1m]
	// acme/search is limited to [10/1s 4 concurrent]
}

func ExampleParsePolicy_errors() {
	_, err := lease.ParsePolicy("ration.yaml", []byte(`
limits:
  - key: "{account}/"
    rule: [10/s, "5 concurent"]
`))
	fmt.Println(err)
	// Output:
	// ration.yaml:3:21: a segment of the key is empty; remove the extra slash
	// ration.yaml:4:5: unknown field "rule"; write rules
}
