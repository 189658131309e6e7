package cli

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTextLogIsSentencesAndJSONLogIsRecords(t *testing.T) {
	var b bytes.Buffer
	text := Logging{LogFormat: "text"}.Voice("exec", Streams{Err: &b})
	text.Log.Warn("lost NATS; trying again", "url", "", "error", fmt.Errorf("bus: reading: %w", errors.New("EOF")))
	text.Log.With("cell", "a").Info("connected to NATS again", "url", "nats://a:1")
	text.Log.Debug("nobody wants to know")
	text.Log.Info("handed over", "after", 9314313817*time.Nanosecond, "why", "another, newer one")
	const at = `\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} `
	require.Regexp(t, "^"+at+`exec: lost NATS; trying again \(reading: EOF\)\n`+
		at+`exec: connected to NATS again \(cell a; url nats://a:1\)\n`+
		at+`exec: handed over \(after 9\.32s; why another, newer one\)\n$`, b.String())

	b.Reset()
	Logging{LogFormat: "json"}.Voice("exec", Streams{Err: &b}).Log.Warn("lost NATS", "url", "nats://a:1")
	require.Contains(t, b.String(), `"level":"WARN","msg":"lost NATS","command":"exec","url":"nats://a:1"}`)
}
