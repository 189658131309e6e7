package lease

import "ration/algo"

// Epoch counts leaderships of a partition. It is compared for equality only:
// Mark tells apart two epochs of the same number that were won from mirrors
// which did not know of each other.
type Epoch struct {
	Number uint64
	Mark   uint64
}

// Seat is who leads a partition, and what the mirror knows besides its keys.
type Seat struct {
	// Epoch is zero where there is no seat: nobody ever led, or the mirror has lost all.
	Epoch Epoch
	// Name is what people call the coordinator that won it.
	Name string
	// Mirror names the mirror, from its first seat on. It is 0 where there is none.
	Mirror uint64
	// Partitions is into how many the cell is divided.
	Partitions int
	// Vacant says that its leader has resigned.
	Vacant bool
	// Seq is that of the last turn under this epoch, and Pulse what the leader showed
	// last. Whoever watches them stand still may take the seat.
	Seq   uint64
	Pulse Pulse
	// Revision is that of the policy in force, 0 for none, and Available whether a leader goes
	// on without the mirror under it. They change with turns and not with leaders.
	Revision  uint64
	Available bool
	// Dial is how calendar time lay to ledger time at the last turn.
	Dial Dial
	// Clock is the mirror's own wall clock at the last turn or renewal, and Now when the
	// seat was read. Both are 0 in a mirror without a clock.
	Clock algo.Instant
	Now   algo.Instant
	// Run names the life of the mirror's process in which it was last known to be
	// whole, and Running the one in which the seat was read.
	Run     string
	Running string
	// Lost and Lagged say which records cannot be trusted.
	Lost   Doubt
	Lagged Doubt
	// Fresh says of a seat that is campaigned for that nothing was there before. It is not
	// kept.
	Fresh bool
}

// Pulse is what a leader shows so that others see that it lives, and know what time
// it is.
type Pulse struct {
	// Beat is another number each time.
	Beat uint64
	// Instant is ledger time, and Wall the leader's wall clock at that instant.
	Instant algo.Instant
	Wall    algo.Instant
	// Holders is how many holders the leader knows: as many may turn to the next one.
	Holders int
	// Run, unless it is empty, is written as that of the seat.
	Run string
	// Revision is that of the policy that the leader goes by. It is looked at, and not kept.
	Revision uint64 `json:"-"`
}

// Moved says that somebody has used the seat since it was seen so.
func (s *Seat) Moved(seen *Seat) bool {
	return s.Epoch != seen.Epoch || s.Seq != seen.Seq || s.Pulse.Beat != seen.Pulse.Beat || s.Vacant != seen.Vacant
}

// Fence says what becomes of something that is done under an epoch: nothing, with
// ErrFenced or ErrLost, unless that has the seat. It says what every mirror does.
func (s *Seat) Fence(e Epoch) error {
	switch {
	case s.Epoch == e && !s.Vacant:
		return nil
	case s.Epoch.Number < e.Number:
		return ErrLost
	}
	return ErrFenced
}

// Renewed says what becomes of a renewal under an epoch that has the seat: nothing, with
// ErrPolicy, where a later policy is in force than the leader goes by.
func (s *Seat) Renewed(p Pulse) error {
	if s.Revision > p.Revision {
		return ErrPolicy
	}
	return nil
}

// Reform makes the seat one of a turn's policy, if that has one.
func (s *Seat) Reform(p *PolicyRecord) {
	if p != nil {
		s.Revision, s.Available = p.Revision, p.Available
	}
}

// Follow says what becomes of a turn under an epoch that has the seat: it is to be
// applied, or has been, or gives ErrGap.
func (s *Seat) Follow(seq uint64) (apply bool, err error) {
	switch seq {
	case s.Seq:
		return false, nil
	case s.Seq + 1:
		return true, nil
	}
	return false, ErrGap
}
