package table_test

import (
	"fmt"

	"ration/internal/table"
)

type entry struct {
	key string
	n   int
}

func keyOf(e *entry) string { return e.key }

func Example() {
	t := table.New(keyOf)
	t.Put(&entry{"acme", 1})
	t.Put(&entry{"acme", 2})
	e, ok := t.Get("acme")
	fmt.Println(e.n, ok, t.Len())
	t.Delete("acme")
	_, ok = t.Get("acme")
	fmt.Println(ok, t.Len())
	// Output:
	// 2 true 1
	// false 0
}
