package cli

import (
	"log/slog"
	"time"

	"ration/bus"
)

// Server is the flag that names the NATS system of who cannot bring one along.
type Server struct {
	Nats string `help:"NATS system to talk over. Without it nats://127.0.0.1:4222." env:"NATS_URL" placeholder:"URL"`
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

	Context  string `help:"Context of the nats command to connect by: its name, its file, or 'selected' for the selected one." env:"NATS_CONTEXT" placeholder:"NAME" group:"NATS credentials"`
	Creds    string `help:"File with a user's JWT and seed." env:"NATS_CREDS" placeholder:"FILE" group:"NATS credentials"`
	User     string `help:"User name." env:"NATS_USER" placeholder:"NAME" group:"NATS credentials"`
	Password string `help:"Password of --user." env:"NATS_PASSWORD" placeholder:"TEXT" group:"NATS credentials"`
	Token    string `help:"Token." env:"NATS_TOKEN" placeholder:"TEXT" group:"NATS credentials"`
	Nkey     string `help:"File with a user's seed." env:"NATS_NKEY" placeholder:"FILE" group:"NATS credentials"`
	Tlscert  string `help:"File with the TLS certificate to show." env:"NATS_CERT" placeholder:"FILE" group:"NATS credentials"`
	Tlskey   string `help:"File with the private key of --tlscert." env:"NATS_KEY" placeholder:"FILE" group:"NATS credentials"`
	Tlsca    string `help:"File with the authorities to trust." env:"NATS_CA" placeholder:"FILE" group:"NATS credentials"`
	Tlsfirst bool   `help:"Begin with TLS, before the server says anything." group:"NATS credentials"`

	InboxPrefix string `help:"Where replies arrive, for users that may not subscribe to _INBOX.>" placeholder:"SUBJECT" group:"NATS credentials"`

	jwt, seed string // of the context
}

// Enter fills in from --context, if there is one, what no flag and no variable says.
// Credentials are not mixed: who names some takes none of the
// context. It comes before Config.
func (c *Connection) Enter(url *string, s Streams) error {
	if c.Context == "" {
		return nil
	}
	at, config, err := bus.ReadContext(c.Context, func(name string) string {
		value, _ := s.Getenv(name)
		return value
	})
	if err != nil {
		return Misuse("--context: %w", err)
	}
	fill(url, at)
	if c.Creds == "" && c.User == "" && c.Token == "" && c.Nkey == "" {
		c.Creds, c.User, c.Password, c.Token, c.Nkey = config.Creds, config.User, config.Password, config.Token, config.NKey
		c.jwt, c.seed = config.JWT, config.Seed
	}
	if c.Tlscert == "" && c.Tlskey == "" {
		c.Tlscert, c.Tlskey = config.Cert, config.Key
	}
	fill(&c.Tlsca, config.CA)
	fill(&c.InboxPrefix, config.InboxPrefix)
	c.Tlsfirst = c.Tlsfirst || config.TLSFirst
	return nil
}

func fill(to *string, value string) {
	if *to == "" {
		*to = value
	}
}

// Locate is Enter where a NATS system is always needed.
func (n *Server) Locate(c *Connection, s Streams) error {
	if err := c.Enter(&n.Nats, s); err != nil {
		return err
	}
	fill(&n.Nats, bus.DefaultURL)
	return CheckNATS(n.Nats)
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
		JWT:      c.jwt,
		Seed:     c.seed,
		TLSFirst: c.Tlsfirst,
		Log:      log,

		InboxPrefix: c.InboxPrefix,
	}
	if err := config.Validate(); err != nil {
		return bus.ConnectConfig{}, Misuse("%w", err)
	}
	return config, nil
}
