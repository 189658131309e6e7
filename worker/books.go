package worker

// Books says where all tokens went that were ever granted. At a quiet moment,
// with no Allow under way, Granted = Spent + Returned + Expired + Held.
type Books struct {
	Granted  int64 // by leases taken
	Spent    int64 // by calls that left, or may have
	Returned int64 // unspent, to the lessor
	Expired  int64 // lost to a deadline, or with a lease that ended early
	Held     int64 // at hand, or in the hands of calls

	// Units besides calls likewise, all of them added up.
	UnitsGranted  int64
	UnitsSpent    int64
	UnitsReturned int64
	UnitsExpired  int64
	UnitsHeld     int64

	// What calls used beyond what they had asked for is in none of these.
	Overspent      int64
	UnitsOverspent int64

	Requests     int64 // copies of requests sent
	Grants       int64 // leases taken
	Refusals     int64
	Dropped      int64 // answers to ids already taken, given up or refused
	GivenUp      int64 // ids given up
	Overdue      int64 // takes found past their deadline, so no spends
	LostCalls    int64 // calls cut because their slot's lease was lost
	Recalls      int64
	Handed       int64 // slots that went from one call to the next without a message
	RunsGivenUp  int64 // rests of runs that went back since they were about to end
	RunsTooShort int64 // rests of runs that went back since the next call costs more
	Incarnated   int64 // times that all leases were dropped for a new incarnation
}

// Add adds the numbers of o to b.
func (b *Books) Add(o Books) {
	b.Granted += o.Granted
	b.Spent += o.Spent
	b.Returned += o.Returned
	b.Expired += o.Expired
	b.Held += o.Held
	b.UnitsGranted += o.UnitsGranted
	b.UnitsSpent += o.UnitsSpent
	b.UnitsReturned += o.UnitsReturned
	b.UnitsExpired += o.UnitsExpired
	b.UnitsHeld += o.UnitsHeld
	b.Overspent += o.Overspent
	b.UnitsOverspent += o.UnitsOverspent
	b.Requests += o.Requests
	b.Grants += o.Grants
	b.Refusals += o.Refusals
	b.Dropped += o.Dropped
	b.GivenUp += o.GivenUp
	b.Overdue += o.Overdue
	b.LostCalls += o.LostCalls
	b.Recalls += o.Recalls
	b.Handed += o.Handed
	b.RunsGivenUp += o.RunsGivenUp
	b.RunsTooShort += o.RunsTooShort
	b.Incarnated += o.Incarnated
}

// Books gives the pool's books as they stand. What Allow has spent counts as held
// until the Tick or Report that dates it.
func (p *Pool) Books() Books {
	b := p.books
	b.Held, b.UnitsHeld = p.open, p.unitsOpen
	for _, h := range p.leases {
		b.Held += h.left() + h.swift() - h.dated
		for i := range h.units {
			b.UnitsHeld += h.units[i].left
		}
	}
	return b
}

// retire gives the books of an idle pool whose time is over. An Allow that still
// has it is not told that it need not ask: it finds out by asking.
func (p *Pool) retire() Books {
	b := p.Books()
	p.books = Books{}
	p.dry.Store(unbarred)
	return b
}
