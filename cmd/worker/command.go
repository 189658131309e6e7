package main

import (
	"context"

	"ration/cmd/internal/cli"
)

const (
	name        = "worker"
	description = "Makes calls at the pace that a fleet's rate limits allow.\n\n" +
		"See `worker COMMAND --help` for examples.\n\n" + cli.Codes
)

// commands is the grammar of the command line.
type commands struct {
	Exec    execCommand    `cmd:"" help:"Run a command for each line of input, xargs for a fleet."`
	Load    loadCommand    `cmd:"" help:"Make demand, for trying things out."`
	Version versionCommand `cmd:"" help:"Print the version."`
	Warden  wardenCommand  `cmd:"" hidden:"" help:"Kill what commands leave behind when the worker that started this is killed."`
}

// runner is a command that has been read.
type runner interface {
	run(ctx context.Context, s cli.Streams) error
}

// run is the whole command: it reads args, does what they say, and gives the
// exit code.
func run(ctx context.Context, args []string, s cli.Streams) int {
	var all commands
	in, err := cli.Parse(&all, name, description, args, s)
	if in == nil {
		return cli.Finish(name, err, s)
	}
	chosen := in.Selected().Target.Addr().Interface().(runner)
	return cli.Finish(name, in.Blame(chosen.run(ctx, s)), s)
}

type versionCommand struct{}

func (*versionCommand) run(_ context.Context, s cli.Streams) error {
	return cli.PrintVersion(name, s)
}
