// Package readme holds that what the repository says of itself is true. It has
// tests only: they type every command of README.md and of the pages in docs/ in
// a copy of the tree, look at the output that a page shows, and check that its
// Go is in the examples and its links lead somewhere.
//
// A page's blocks say by their first line what they are:
//
//	```sh            a script, which must exit with 0
//	```sh serve      a coordinator, which runs until the page ends
//	```sh together   shells, one for each line, all at once
//	```text          what the block before it prints, to the letter
//	```text about    the same, but for figures and the widths of columns
//	```yaml          a file, named by the comment that it begins with
//	```conf          a configuration of NATS, which a test of the bus loads
//	```go            a part of an example
package readme
