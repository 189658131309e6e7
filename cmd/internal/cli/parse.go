package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"ration/bus"
)

// Invocation is a command line that has been understood.
type Invocation struct {
	*kong.Context
	environment *environment
}

// Variable gives the variable of the environment that a flag, named without
// dashes, has its value from, if it has it from one.
func (i *Invocation) Variable(flag string) (name string, ok bool) {
	name, ok = i.environment.used[flag]
	return name, ok
}

// Blame adds to an error of misuse which variable of the environment set the flag
// that it is about.
func (i *Invocation) Blame(err error) error {
	if Code(err) != Misused {
		return err
	}
	return i.environment.blame(err)
}

// absent is what kong says of arguments that are not there.
var absent = regexp.MustCompile(`^expected "(<.*)"$`)

// exited is what kong's help panics with, since kong goes on parsing otherwise.
type exited int

// Parse reads args into grammar, a pointer to a struct as kong reads it. The
// precedence is flag, environment, default. It gives no invocation and no error
// if help was asked for and printed. An error is one of misuse.
func Parse(grammar any, name, description string, args []string, s Streams) (in *Invocation, err error) {
	e := &environment{s, map[*kong.Value][]string{}, map[string]string{}}
	parser, err := kong.New(grammar,
		kong.Name(name),
		kong.Description(description),
		kong.Writers(s.Out, s.Err),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 100, FlagsLast: true, NoExpandSubcommands: true}),
		values,
		kong.Help(help),
		kong.PostBuild(e.build),
		kong.ValueFormatter(e.help),
		kong.Resolvers(kong.ResolverFunc(e.resolve)),
		kong.Exit(func(code int) { panic(exited(code)) }),
	)
	if err != nil {
		panic(fmt.Sprintf("cli: the flags of %s: %v", name, err))
	}
	defer func() {
		if thrown := recover(); thrown != nil {
			if _, ok := thrown.(exited); !ok {
				panic(thrown)
			}
			in, err = nil, nil
		}
	}()
	args, err = spelt(parser.Model, name, args)
	if err != nil {
		return nil, err
	}
	ctx, err := parser.Parse(args)
	if err != nil {
		if m := absent.FindStringSubmatch(err.Error()); m != nil {
			err = fmt.Errorf("missing arguments: %s", m[1])
		}
		return nil, Misuse("%w; see %s --help", e.blame(err), command(name, args))
	}
	return &Invocation{ctx, e}, nil
}

// help prints the help of a command. What follows the first argument of one that
// passes arguments on belongs to that, and so do flags.
func help(options kong.HelpOptions, ctx *kong.Context) error {
	node := ctx.Selected()
	if node == nil || len(node.Positional) == 0 || !node.Positional[0].Passthrough {
		return kong.DefaultHelpPrinter(options, ctx)
	}
	out := ctx.Stdout
	defer func() { ctx.Stdout = out }()
	var b bytes.Buffer
	ctx.Stdout = &b
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	argument := node.Positional[0].Summary()
	_, err := io.WriteString(out, strings.Replace(b.String(), argument+" [flags]", "[flags] [--] "+argument, 1))
	return err
}

// spelt gives args with the words that people try first, --version, help and
// help COMMAND, in the words of the grammar, or an error if they begin with no
// command.
func spelt(grammar *kong.Application, name string, args []string) ([]string, error) {
	if len(args) == 0 {
		return args, nil
	}
	var known []string
	hidden := false
	for _, child := range grammar.Children {
		switch {
		case child.Name == args[0]:
			hidden = true
			fallthrough
		case !child.Hidden:
			known = append(known, child.Name)
		}
	}
	switch {
	case len(args) == 1 && args[0] == "--version" && slices.Contains(known, "version"):
		return []string{"version"}, nil
	case hidden:
		return args, nil
	case args[0] == "help" && (len(args) == 1 || slices.Contains(known, args[1])):
		return append(slices.Clone(args[1:]), "--help"), nil
	case args[0] == "help":
		args = args[1:]
	case strings.HasPrefix(args[0], "-") || takesArguments(grammar):
		return args, nil
	}
	return nil, Misuse("unknown command %s; there are %s; see %s --help", Printable(args[0], 40), strings.Join(known, ", "), name)
}

// takesArguments says that what stands first may be an argument of the command
// that is meant where none is named.
func takesArguments(grammar *kong.Application) bool {
	return grammar.DefaultCmd != nil && len(grammar.DefaultCmd.Positional) > 0
}

// command is the name with the subcommand that args begin with.
func command(name string, args []string) string {
	if len(args) > 0 && args[0] != "" && strings.Trim(args[0], "abcdefghijklmnopqrstuvwxyz") == "" {
		return name + " " + args[0]
	}
	return name
}

// Finish tells s about err, unless that has been done, and gives the exit code.
func Finish(name string, err error, s Streams) int {
	if err != nil && !explained(err) {
		fmt.Fprintf(s.Err, "%s: %s\n", name, plain(err))
	}
	return Code(err)
}

// packages is the names of packages that errors begin with.
var packages = regexp.MustCompile(`(?m)(^|: )(?:(?:ration|bus|coordinator|worker|lease|algo): )+`)

// plain is the text of an error for people, who set what they set by flags.
func plain(err error) string {
	text := err.Error()
	var setting *bus.SettingError
	if errors.As(err, &setting) {
		text = strings.Replace(text, setting.Remedy, setting.Flags, 1)
	}
	return packages.ReplaceAllString(text, "$1")
}
