package lease

const demoText = `unknown: refuse
limits:
  - key: demo
    rules: [5/1s, 12/3s]
    guard: 60ms
  - key: "{name}"
    rules: [10/1s]
`

// Demo is the policy of a coordinator that is given none: a contract of two
// windows for the key "demo", and ten calls a second for every other first
// segment.
func Demo() *Policy {
	p, err := ParsePolicy("demo", []byte(demoText))
	if err != nil {
		panic("lease: the demo policy: " + err.Error())
	}
	return p
}
