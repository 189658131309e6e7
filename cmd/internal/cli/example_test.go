package cli_test

import (
	"fmt"
	"os"

	"ration/cmd/internal/cli"
	"ration/lease"
)

func ExampleParse() {
	var grammar struct {
		Greet struct {
			Name string `required:"" help:"Whom to greet."`
		} `cmd:"" help:"Say hello."`
	}
	streams := cli.Streams{Out: os.Stdout, Err: os.Stdout, Environ: []string{"RATION_NAME=fleet"}}
	if _, err := cli.Parse(&grammar, "demo", "A demonstration.", []string{"greet"}, streams); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("hello", grammar.Greet.Name)
	// Output: hello fleet
}

func ExampleCode() {
	err := fmt.Errorf("asking: %w", lease.ErrNoCoordinator)
	fmt.Println(cli.Finish("demo", err, cli.Streams{Err: os.Stdout}))
	// Output:
	// demo: asking: no coordinator answers
	// 5
}

func ExampleLines() {
	l := cli.NewLines(os.Stdout)
	fmt.Fprint(l, "one line, wri")
	fmt.Fprint(l, "tten in pieces\nand one without an end")
	l.Close()
	// Output:
	// one line, written in pieces
	// and one without an end
}
