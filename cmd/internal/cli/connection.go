package cli

import (
	"log/slog"
	"time"

	"ration/bus"
)

// Server is the flag that names the NATS system of who cannot bring one along.
type Server struct {
	Nats string `help:"NATS system to talk over." env:"NATS_URL" default:"nats://127.0.0.1:4222" placeholder:"URL"`
}

// CheckNATS gives an error of misuse if --nats is no URL of a NATS system.
func CheckNATS(url string) error {
	if err := bus.CheckURL(url); err != nil {
		return Misuse("--nats: %w", err)
	}
	return nil
}

// Connection is the flags about NATS that every command which talks over it
// has. Credentials are spelt as the nats command spells them.
type Connection struct {
	Cell        string        `help:"Deployment to talk to." default:"default" placeholder:"NAME"`
	ConnectWait time.Duration `help:"How long first contact may take." default:"500ms" placeholder:"D"`

	Creds    string `help:"File with a user's JWT and seed." env:"NATS_CREDS" placeholder:"FILE" group:"NATS credentials"`
	User     string `help:"User name." env:"NATS_USER" placeholder:"NAME" group:"NATS credentials"`
	Password string `help:"Password of --user." env:"NATS_PASSWORD" placeholder:"TEXT" group:"NATS credentials"`
	Token    string `help:"Token." env:"NATS_TOKEN" placeholder:"TEXT" group:"NATS credentials"`
	Nkey     string `help:"File with a user's seed." env:"NATS_NKEY" placeholder:"FILE" group:"NATS credentials"`
	Tlscert  string `help:"File with the TLS certificate to show." env:"NATS_CERT" placeholder:"FILE" group:"NATS credentials"`
	Tlskey   string `help:"File with the private key of --tlscert." env:"NATS_KEY" placeholder:"FILE" group:"NATS credentials"`
	Tlsca    string `help:"File with the authorities to trust." env:"NATS_CA" placeholder:"FILE" group:"NATS credentials"`
}

// Config gives what bus.Connect is told, or an error of misuse.
func (c *Connection) Config(name string, log *slog.Logger) (bus.ConnectConfig, error) {
	if c.ConnectWait <= 0 {
		return bus.ConnectConfig{}, Misuse("--connect-wait %v is not above 0; give one like 500ms", c.ConnectWait)
	}
	if err := (bus.ClientConfig{Cell: c.Cell}).Validate(); err != nil {
		return bus.ConnectConfig{}, Misuse("--cell: %w", err)
	}
	config := bus.ConnectConfig{
		Name:     name,
		Wait:     c.ConnectWait,
		Creds:    c.Creds,
		User:     c.User,
		Password: c.Password,
		Token:    c.Token,
		NKey:     c.Nkey,
		Cert:     c.Tlscert,
		Key:      c.Tlskey,
		CA:       c.Tlsca,
		Log:      log,
	}
	if err := config.Validate(); err != nil {
		return bus.ConnectConfig{}, Misuse("%w", err)
	}
	return config, nil
}
