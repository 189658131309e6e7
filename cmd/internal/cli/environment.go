package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// environment gives flags their values from variables: the ones a flag's env
// tag names, and RATION_ with the flag's own name. It stands in for kong's own
// reading of the environment, which cannot be handed another environment and
// does not tell where a bad value came from.
type environment struct {
	streams Streams
	names   map[*kong.Value][]string
	// used holds the variable that each flag was set from.
	used map[string]string
}

// build takes the variables over from kong.
func (e *environment) build(k *kong.Kong) error {
	return kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok && flag.Name != "help" {
			own := "RATION_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
			e.names[flag.Value] = append([]string{own}, flag.Value.Tag.Envs...)
			flag.Envs, flag.Value.Tag.Envs = nil, nil
		}
		return next(nil)
	})
}

// help is a flag's help with its default and its variables.
func (e *environment) help(value *kong.Value) string {
	var more []string
	if value.HasDefault {
		more = append(more, "default "+value.Default)
	}
	for _, name := range e.names[value] {
		more = append(more, "$"+name)
	}
	if len(more) == 0 {
		return value.Help
	}
	return fmt.Sprintf("%s (%s)", strings.TrimSuffix(value.Help, "."), strings.Join(more, ", "))
}

// resolve gives the value of a flag that the command line does not set.
func (e *environment) resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, name := range e.names[flag.Value] {
		if value, ok := e.streams.Getenv(name); ok {
			e.used[flag.Name] = name
			return value, nil
		}
	}
	return nil, nil
}

// blame adds to a complaint about a flag which variable set it.
func (e *environment) blame(err error) error {
	for flag, name := range e.used {
		if strings.Contains(err.Error(), "--"+flag) {
			return fmt.Errorf("%w (set by the environment variable %s)", err, name)
		}
	}
	return err
}
