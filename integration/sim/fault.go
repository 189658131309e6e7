package sim

// faults names what goes wrong in worlds, and what rarely comes of it. Every world
// counts all of them, so that one which never happens is seen.
var faults = []string{
	// Of messages.
	"delay", "drop", "duplicate", "reorder", "partition",
	"route between NATS nodes lost",
	"standby hears nobody though the leader lives",
	"worker is not on the leader's side",
	"worker reaches one of two leaders",
	// Of holders and their callers.
	"abandon", "allow", "cancel", "cancel at the take", "crash", "cut off", "long call", "lost call", "never sent",
	"nobody leads", "overspend", "pause before the spend", "pause past the lease", "settle", "shed for a higher class", "short pause",
	// Of strangers.
	"flood", "flood of one key", "little room", "nonsense counted", "nonsense given up",
	// Of requests for several keys.
	"paused at a further key", "refused by a further key",
	// Of operators.
	"act unheard", "charge", "charge above", "charge without room", "pause for a time", "pause past the leases", "pause until it is resumed", "reset of a key",
	"reset while the mirror is in doubt",
	// Of coordinators.
	"all coordinators killed", "coordinator killed", "coordinator cut off from NATS", "coordinator cut off from the store",
	"coordinator paused", "leader paused", "woken leader is fenced", "two leaders at once",
	"deaf leader resigns", "handover", "stalled turn", "takeover", "takeover after a total outage",
	"renewal is fenced", "leader paused while it wins back", "deposed by a turn", "deposed by the store's loss",
	// Of the store.
	"answer of the mirror lost", "call of the mirror carried out twice", "call of the mirror late", "call of the mirror lost",
	"answer to a campaign lost", "won unheard", "won back", "won back unheard",
	"store is whole in its new life", "store started empty", "store started empty, and its leader killed",
	"store started with old data", "store started with old data, and its leader killed", "store lost its tail", "store hung",
	// Of turns of which it was not known whether they are recorded: what had become of them.
	"outcome unknown", "unknown, and was applied then", "unknown, and had been applied", "unknown, and came to a gap",
	"unknown, and the store had lost it", "unknown, and was fenced",
	// Of policies.
	"policy changed", "rule removed", "rule added", "limit lowered", "same policy again", "policy changed back",
	"takeover under a changed policy", "judged by another policy",
	// Of wall clocks.
	"wall clock set ahead", "wall clock set back", "wall clock set right", "wall clock set past a boundary",
	"wall clock set within a period", "takeover under another wall clock", "store's wall clock set",
	"wall clock set in a total outage", "calendar time apart from the wall clock",
}

// count counts a fault.
func (w *World) count(fault string) {
	if _, known := w.Faults[fault]; !known {
		panic("sim: " + fault + " is not among the faults")
	}
	w.Faults[fault]++
}

// none counts all faults, of which none has happened.
func none() map[string]int {
	counts := map[string]int{}
	for _, name := range faults {
		counts[name] = 0
	}
	return counts
}
