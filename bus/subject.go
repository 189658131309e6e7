package bus

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"ration/lease"
)

// DefaultCell is the cell of who names none. A cell is one deployment of
// Ration; one NATS system can carry several.
const DefaultCell = "default"

// MaxPartitions is the most partitions a cell can be divided into.
const MaxPartitions = 1024

const (
	root       = "ration.v1."
	maxCellLen = 64

	verbAcquire = "acquire"
	verbReport  = "report"
)

// Token gives a tenant's place in a subject. Letters, digits, '-' and '_' stay
// as they are; a tenant with any other byte, or one that begins with '_', is
// '_' and its base64url form without padding. Two tenants never share a token,
// and a token never holds what NATS gives a meaning to.
func Token(tenant string) string {
	if tenant != "" && tenant[0] != '_' && plain(tenant) {
		return tenant
	}
	return "_" + base64.RawURLEncoding.EncodeToString([]byte(tenant))
}

// Partition gives the partition, 0 to n-1, of the tenant with that token: its
// 32-bit FNV-1a hash modulo n. That is what a NATS server computes for
// {{partition(n,…)}} of the token, so a subject mapping finds the same place.
func Partition(token string, n int) int {
	hash := uint32(2166136261)
	for i := range len(token) {
		hash = (hash ^ uint32(token[i])) * 16777619
	}
	return int(hash % uint32(n))
}

func plain(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// checkCell says what is wrong with a cell's name.
func checkCell(cell string) error {
	if cell == "" || len(cell) > maxCellLen || !plain(cell) {
		return fmt.Errorf("bus: cell %.80q: use 1 to %d letters, digits, '-' or '_'", cell, maxCellLen)
	}
	return nil
}

func checkPartitions(n int) error {
	if n < 1 || n > MaxPartitions {
		return fmt.Errorf("bus: %d partitions: use 1 to %d", n, MaxPartitions)
	}
	return nil
}

func partitionSubject(cell string, n int) string {
	return root + cell + ".p." + strconv.Itoa(n)
}

// recallSubject is where the recalls of one life of a holder are published.
// The incarnation is hexadecimal and has no '-', so no two holders share it.
func recallSubject(cell string, h lease.Holder) string {
	return root + cell + ".recall." + Token(h.Name) + "-" + strconv.FormatUint(h.Incarnation, 16)
}

// partitionStatusSubject is where the leader of a partition is asked for the status of that.
func partitionStatusSubject(cell string, n int) string { return partitionSubject(cell, n) + ".status" }

func statusSubject(cell string) string { return root + cell + ".admin.status" }

// verbAndToken takes the last two tokens of a subject.
func verbAndToken(subject string) (verb, token string) {
	i := strings.LastIndexByte(subject, '.')
	if i < 0 {
		return "", subject
	}
	verb, token = subject[:i], subject[i+1:]
	return verb[strings.LastIndexByte(verb, '.')+1:], token
}

// sameTenant gives the one tenant of keys, or an error wrapping
// lease.ErrBadRequest if there are several or none.
func sameTenant(keys []lease.Key) (string, error) {
	if len(keys) == 0 {
		return "", fmt.Errorf("%w: it names no key", lease.ErrBadRequest)
	}
	tenant := keys[0].Tenant()
	for _, k := range keys[1:] {
		if t := k.Tenant(); t != tenant {
			return "", fmt.Errorf("%w: keys of two tenants, %.80q and %.80q; send a message for each",
				lease.ErrBadRequest, tenant, t)
		}
	}
	return tenant, nil
}
