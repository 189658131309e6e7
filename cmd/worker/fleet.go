package main

import (
	"context"
	"errors"

	"ration"
	"ration/bus"
	"ration/cmd/internal/cli"
)

// connect joins the fleet. First contact may take --connect-wait: with NATS, and
// with a coordinator behind it. Later on nobody is an error; calls wait.
func (d *demand) connect(ctx context.Context, voice *cli.Voice) (*ration.Client, error) {
	config, err := d.Config(d.Name, voice.Log)
	if err != nil {
		return nil, err
	}
	options := []ration.Option{
		ration.WithCell(d.Cell),
		ration.WithConnectWait(d.ConnectWait),
		ration.WithLog(voice.Log),
		ration.WithCredentials(ration.Credentials{
			Creds:    config.Creds,
			User:     config.User,
			Password: config.Password,
			Token:    config.Token,
			NKey:     config.NKey,
			Cert:     config.Cert,
			Key:      config.Key,
			CA:       config.CA,
			JWT:      config.JWT,
			Seed:     config.Seed,
			TLSFirst: config.TLSFirst,

			InboxPrefix: config.InboxPrefix,
		}),
	}
	if d.Name != "" {
		options = append(options, ration.WithName(d.Name))
	}
	options = append(options, ration.WithClass(d.Class))
	client, err := ration.ConnectContext(ctx, d.Nats, options...)
	if err != nil {
		return nil, err
	}
	first, cancel := context.WithTimeout(ctx, d.ConnectWait)
	defer cancel()
	if err := client.Contact(first, d.Key[0]); err != nil {
		if errors.Is(err, ration.ErrNoCoordinator) {
			err = cli.Nobody(bus.Redacted(d.Nats), d.Cell)
		}
		return nil, errors.Join(cli.Foreign(err), client.Close(ctx))
	}
	return client, nil
}

// sentAt is when h's call is dated, in nanoseconds since 1970.
func sentAt(h *ration.Handle) int64 { return h.Sent().UnixNano() }
