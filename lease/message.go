package lease

import (
	"fmt"
	"slices"
	"time"
)

// Holder is one life of one worker process: the name people know it by and a
// random number that no other life of it has.
type Holder struct {
	Name        string
	Incarnation uint64
}

func (h Holder) String() string { return fmt.Sprintf("%s.%x", h.Name, h.Incarnation) }

// ID names a request, and the lease that the request was granted. The holder
// chooses it; a retry carries the same ID and is the same request.
type ID struct {
	Holder Holder
	Seq    uint64
}

func (id ID) String() string { return fmt.Sprintf("%s/%d", id.Holder, id.Seq) }

// Amount is a number of tokens, of slots, and of whatever else calls cost. A
// token is spent by one call; a slot serves one call after another. All are
// counted apart.
type Amount struct {
	Tokens int64
	Slots  int64
	Units  Units
}

// Equal says that two amounts are the same.
func (m Amount) Equal(o Amount) bool {
	return m.Tokens == o.Tokens && m.Slots == o.Slots && slices.Equal(m.Units, o.Units)
}

// Zero says that it is nothing.
func (m Amount) Zero() bool { return m.Tokens == 0 && m.Slots == 0 && len(m.Units) == 0 }

// Request asks for a lease on all of Keys at once: up to Want, nothing below
// Need, of each unit. Slots count only where a concurrency rule binds one of the
// keys. It needs a token or a slot at least; other units come on top.
type Request struct {
	ID   ID
	Keys []Key
	Want Amount
	Need Amount
	// Class is which class of the lines it is to stand in, one of the policy's; empty for
	// the highest that its plan allows, or else the lowest there is. A plan's class is the
	// highest in any case.
	Class string
	// Sent is the holder's own clock when this copy of the message was sent.
	// It is compared only with other Sent of the same holder.
	Sent time.Duration
	// Patience is how long after Sent the holder will wait for an answer. With
	// 0 the request is granted or refused at once.
	Patience time.Duration
}

// Outcome is what became of a request.
type Outcome uint8

const (
	// Granted: the lease has begun.
	Granted Outcome = iota + 1
	// Refused: nothing was taken; Refusal says why.
	Refused
	// Waiting: it has left the line unanswered because its holder fell silent;
	// ask again under the same ID to wait on.
	Waiting
	// Ended: the request was granted before, and that lease is over, or its ID
	// was given up. Nothing is granted again under this ID.
	Ended
)

// Answer answers one copy of a request. All durations in it count from the
// arrival of that very copy, so a holder counts them from when it sent it.
type Answer struct {
	ID      ID
	Outcome Outcome
	// Granted is what the lease was granted, each unit apart.
	Granted Amount
	// TokenTTL is in how long the lease's tokens and further units expire, under a
	// pace rule little longer than it takes to spend them; SlotTTL in how long its
	// slots do unless they are renewed. The holder stops earlier, by Margin.
	TokenTTL time.Duration
	SlotTTL  time.Duration
	// Waited is how long the request stood in line; above 0 means that the
	// limit is contended.
	Waited  time.Duration
	Terms   Terms
	Refusal Refusal
	Epoch   Epoch
	// Policy is the revision of the policy under which it was granted; 0 where nothing was,
	// or the revision is not told.
	Policy uint64
}

// Terms is what a holder has to know about a contract to behave well.
type Terms struct {
	// Window is the shortest time in which a rate rule, in shadow or not, has all back
	// that was spent: its period, or less for a bucket that fills sooner, and a
	// 32nd of it for a counter, which counts a spend only when it is told; 0 if no
	// rule counts tokens or other units. Spends are reported within half of it.
	Window time.Duration
	// Spacing is above 0 where a pace rule binds: the holder spends one call at a
	// time, and after a call of cost n nothing for n times Spacing, by its own clock
	// and whatever lease it spends of. It tells of each spend with a point of its
	// own, and of the last one of a lease at once.
	Spacing time.Duration
	// Concurrent says that a concurrency rule binds: a call needs a slot.
	Concurrent bool
	// Unlimited says that no rule counts tokens or other units.
	Unlimited bool
	// Bounded says that the policy bounds how many of the class may wait: a holder lets no
	// more than Line of its callers wait, and refuses one more with ErrLineFull.
	Bounded bool
	Line    int
}

// Point says that Count of a lease's tokens, and Units of its further units, had
// been spent by Age before the message that carries it was sent. Counts are
// cumulative for the lease, also those of units.
type Point struct {
	Count int64
	Age   time.Duration
	Units Units
}

// Count is what has become of one lease so far. Every number in it is
// cumulative for the lease: the ledger keeps the larger, so a repeated, late or
// lost message harms nothing.
type Count struct {
	ID   ID
	Keys []Key
	// Points are the spends not yet known to be recorded, by rising counts.
	// A point that adds nothing is skipped.
	Points []Point
	// Returned is how many tokens have gone back unspent, ReturnedUnits how many
	// of each further unit. A return, once sent, is gone, whatever became of it.
	Returned      int64
	ReturnedUnits Units
	// Freed is how many slots have come back with the upstream's answer to
	// their last call, Cut how many without it: those are free a guard later.
	Freed int64
	Cut   int64
	// Over is how many tokens calls have used beyond what they asked for, and OverUnits
	// how many of each further unit. It may be told of a lease that has ended.
	Over      int64
	OverUnits Units
}

// GivenUp names a request that no grant was ever taken of and none ever will
// be. The holder names it until it is acknowledged.
type GivenUp struct {
	ID   ID
	Keys []Key
}

// Report tells what a holder did with its leases. It touches only what it
// names. All its keys are of one tenant.
type Report struct {
	Holder Holder
	Sent   time.Duration
	// Heartbeat renews the slots of the leases named.
	Heartbeat bool
	// Goodbye says that the counts are final: nothing more will be spent.
	Goodbye bool
	Counts  []Count
	GivenUp []GivenUp
}

// Reply answers a report, once what it told is recorded. Durations count from
// the arrival of the report.
type Reply struct {
	Epoch   Epoch
	Renewed []Renewal
	// Ended names leases of the report that are over, or were never known: the
	// holder stops spending them at once.
	Ended []ID
	// Acknowledged names the given-up ids that need not be named again.
	Acknowledged []ID
}

// Renewal says in how long the slots of a lease expire now.
type Renewal struct {
	ID      ID
	SlotTTL time.Duration
}

// Recall asks a holder, because others wait, to give back its idle tokens and
// units and, as they become idle, up to Slots slots of what it holds on Key, or on
// Key and all of More where its leases name several.
type Recall struct {
	Holder Holder
	Key    Key
	More   []Key
	Slots  int64
}

// On says that the recall is of leases on these keys.
func (r *Recall) On(keys []Key) bool { return r.Key == keys[0] && slices.Equal(r.More, keys[1:]) }

// Margin is how much before a lease's expiry its holder stops: a thousandth of
// ttl, far above what two clocks trusted to 100 ppm can differ by.
func Margin(ttl time.Duration) time.Duration { return ttl/1000 + 1 }

// MaxKeys is how many keys one request may name.
const MaxKeys = 8

// Validate says what is wrong with a request, wrapping ErrBadKey or
// ErrBadRequest, or nil.
func (r *Request) Validate() error {
	switch {
	case r.ID.Holder.Name == "":
		return fmt.Errorf("%w: the holder has no name", ErrBadRequest)
	case r.Need.Tokens < 0 || r.Need.Slots < 0:
		return fmt.Errorf("%w: need of %d tokens and %d slots is negative", ErrBadRequest, r.Need.Tokens, r.Need.Slots)
	case r.Need.Tokens == 0 && r.Need.Slots == 0:
		return fmt.Errorf("%w: it needs no token and no slot; ask for at least 1", ErrBadRequest)
	case r.Want.Tokens < r.Need.Tokens || r.Want.Slots < r.Need.Slots:
		return fmt.Errorf("%w: want of %d tokens and %d slots is below need of %d and %d",
			ErrBadRequest, r.Want.Tokens, r.Want.Slots, r.Need.Tokens, r.Need.Slots)
	case r.Patience < 0:
		return fmt.Errorf("%w: patience %v is negative", ErrBadRequest, r.Patience)
	}
	if err := r.validUnits(); err != nil {
		return err
	}
	if fault := ClassFault(r.Class); fault != "" && r.Class != "" {
		return fmt.Errorf("%w: %s; %s", ErrBadRequest, fault, ClassRemedy)
	}
	return validKeys(r.Keys, r.Keys)
}

func (r *Request) validUnits() error {
	for _, units := range []Units{r.Need.Units, r.Want.Units} {
		if err := units.Validate(); err != nil {
			return err
		}
	}
	for _, need := range r.Need.Units {
		if want := r.Want.Units.Of(need.Unit); want < need.N {
			return fmt.Errorf("%w: want of %d %s is below need of %d", ErrBadRequest, want, need.Unit, need.N)
		}
	}
	return nil
}

// Validate says what is wrong with a report, wrapping ErrBadKey or
// ErrBadRequest, or nil.
func (r *Report) Validate() error {
	if r.Holder.Name == "" {
		return fmt.Errorf("%w: the holder has no name", ErrBadRequest)
	}
	var first []Key
	for _, c := range r.Counts {
		if first == nil {
			first = c.Keys
		}
		if err := validKeys(c.Keys, first); err != nil {
			return err
		}
		if c.Returned < 0 || c.Freed < 0 || c.Cut < 0 || c.Over < 0 {
			return fmt.Errorf("%w: lease %v has a negative count", ErrBadRequest, c.ID)
		}
		if err := c.ReturnedUnits.Validate(); err != nil {
			return fmt.Errorf("%w, in what lease %v returned", err, c.ID)
		}
		if err := c.OverUnits.Validate(); err != nil {
			return fmt.Errorf("%w, in what lease %v used beyond its grant", err, c.ID)
		}
		for _, p := range c.Points {
			if p.Count < 0 || p.Age < 0 {
				return fmt.Errorf("%w: lease %v has a point of count %d and age %v; neither may be negative",
					ErrBadRequest, c.ID, p.Count, p.Age)
			}
			if err := p.Units.Validate(); err != nil {
				return fmt.Errorf("%w, in a point of lease %v", err, c.ID)
			}
		}
	}
	for _, g := range r.GivenUp {
		if first == nil {
			first = g.Keys
		}
		if err := validKeys(g.Keys, first); err != nil {
			return err
		}
	}
	return nil
}

// validKeys checks that keys are valid and of the tenant of the first of all.
func validKeys(keys, all []Key) error {
	if len(keys) == 0 || len(keys) > MaxKeys {
		return fmt.Errorf("%w: it names %d keys; name 1 to %d", ErrBadRequest, len(keys), MaxKeys)
	}
	for _, k := range keys {
		if _, err := ParseKey(string(k)); err != nil {
			return err
		}
		if k.Tenant() != all[0].Tenant() {
			return fmt.Errorf("%w: keys of two tenants, %.80q and %.80q, in one message", ErrBadRequest, all[0].Tenant(), k.Tenant())
		}
	}
	return nil
}
