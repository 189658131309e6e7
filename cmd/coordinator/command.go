package main

import (
	"context"

	"ration/cmd/internal/cli"
)

const (
	name        = "coordinator"
	description = "Owns the true state of every window of a fleet's rate limits, and leases tokens of them to workers over NATS.\n\n" +
		"Without a command it serves. See `coordinator COMMAND --help` for examples.\n\n" + cli.Codes
)

// commands is the grammar of the command line.
type commands struct {
	Serve       serveCommand       `cmd:"" default:"withargs" help:"Lead: grant leases under a policy (the default)."`
	Check       checkCommand       `cmd:"" help:"Say what a policy means, its worst case, and what it costs."`
	Apply       applyCommand       `cmd:"" help:"Put a policy into force, at once."`
	Status      statusCommand      `cmd:"" help:"Show windows, holders, the line and the leader."`
	Pause       pauseCommand       `cmd:"" help:"Grant nothing of a key and of what lies below it."`
	Resume      resumeCommand      `cmd:"" help:"End a pause."`
	Reset       resetCommand       `cmd:"" help:"Forget what was spent of a key, or take the wall clock at once."`
	Charge      chargeCommand      `cmd:"" help:"Count what was used elsewhere as spent."`
	Healthcheck healthcheckCommand `cmd:"" help:"Exit 0 if the coordinator on this machine is ready."`
	Version     versionCommand     `cmd:"" help:"Print the version."`
}

// runner is a command that has been read.
type runner interface {
	run(ctx context.Context, in *cli.Invocation, s cli.Streams) error
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
	return cli.Finish(name, in.Blame(chosen.run(ctx, in, s)), s)
}

type versionCommand struct{}

func (*versionCommand) run(_ context.Context, _ *cli.Invocation, s cli.Streams) error {
	return cli.PrintVersion(name, s)
}
