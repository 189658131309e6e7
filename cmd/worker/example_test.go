package main

import "fmt"

// How exec makes a command of a line.
func Example() {
	fmt.Printf("%q\n", arguments([]string{"curl", "-o", "{}.html", "https://example.org/{}"}, "a b"))
	fmt.Printf("%q\n", arguments([]string{"./ask.sh", "-v"}, "a b"))
	// Output:
	// ["curl" "-o" "a b.html" "https://example.org/a b"]
	// ["./ask.sh" "-v" "a b"]
}
