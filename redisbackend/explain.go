package redisbackend

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
)

// explain says what an operator can do about an error of the server.
func (s *Server) explain(err error) error {
	remedy := remedy(err, strings.HasPrefix(s.name, "rediss://"))
	if remedy != "" {
		remedy = "; " + remedy
	}
	return fmt.Errorf("redisbackend: Redis at %s: %w%s", s.name, err, remedy)
}

// permit is what the user of a coordinator has to be allowed.
const permit = "ACL SETUSER with ~{ration:* +evalsha +eval +hgetall +hmget +hset +hdel +del +pexpire +time +scan +wait +info"

// replies are the beginnings of errors that a server answers with, and what to do.
var replies = []struct{ begins, remedy string }{
	{"WRONGPASS", "give the user and password in the URL, redis://user:password@host:6379"},
	{"NOAUTH", "give the user and password in the URL, redis://user:password@host:6379"},
	{"ERR AUTH <password> called without", "it wants no password; leave it out of the URL"},
	{"NOPERM", "its user may not; allow it, " + permit},
	{"ERR The user executing the script can't run", "its user may not; allow it, " + permit},
	{"READONLY", "it is a replica; name the primary, or the Sentinels"},
	{"LOADING", "it reads its data, and will be asked again"},
	{"MISCONF", "it cannot save its data; its log says why"},
	{"OOM", "it has no memory left; raise maxmemory"},
	{"NOREPLICAS", "it has fewer replicas than its min-replicas-to-write"},
	{"BUSY", "a script of somebody runs too long; redis-cli SCRIPT KILL ends it"},
	{"MOVED", "it is a node of a Cluster; name a further one with &addr=host:port"},
	{"CLUSTERDOWN", "the Cluster lacks a node, or some of its slots; redis-cli --cluster check says which"},
	{"ERR This instance has cluster support disabled", "it is no Cluster; leave &addr= out of the URL"},
	{"redis: all sentinels specified in configuration are unreachable", "start a Sentinel, or correct its address or the master_name"},
}

func remedy(err error, secure bool) string {
	text := err.Error()
	for _, r := range replies {
		if strings.HasPrefix(text, r.begins) {
			return r.remedy
		}
	}
	var (
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		name        *net.DNSError
		timeout     net.Error
	)
	switch {
	case errors.As(err, &certificate):
		return "its certificate does not fit; correct the host's name in the URL, or let SSL_CERT_FILE name a file with the authority that signed it"
	case errors.As(err, &record):
		return "it does not speak TLS; write redis:// for rediss://"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "start it, or correct the host and port"
	case errors.As(err, &name):
		return "correct the host"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return "it ended the connection: it may have gone, or want TLS, which is rediss://"
	case secure && errors.Is(err, context.DeadlineExceeded):
		return "it does not answer in time; if it does not speak TLS, write redis:// for rediss://"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "it does not answer in time"
	}
	return ""
}
