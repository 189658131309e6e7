package oracle_test

import (
	"fmt"
	"strings"
	"time"

	"ration/integration/oracle"
)

func Example() {
	log := `{"key":"demo","sent":0}
{"key":"demo","sent":400000000}
{"key":"demo","sent":999999999}
{"key":"demo","sent":1000000000}
`
	spends, err := oracle.Read(strings.NewReader(log))
	if err != nil {
		panic(err)
	}
	for _, v := range oracle.Violations(spends, oracle.MustRules("2/1s")) {
		fmt.Println(v)
	}
	// Output:
	// rule "2/1s" bore 3 at 999999999 (00:00:00.999999999)
	// rule "2/1s" bore 3 at 1000000000 (00:00:01.000000000)
}

func ExampleSchedule() {
	rules := oracle.MustRules("5/1s, 12/3s")
	fmt.Println(oracle.Schedule{Rules: rules}.Length(30))
	fmt.Println(oracle.Schedule{Rules: oracle.Wider(rules, 60*time.Millisecond)}.Length(30))
	// Output:
	// 7s
	// 7.18s
}
