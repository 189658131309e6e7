package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"ration"
	"ration/cmd/internal/cli"
	"ration/lease"
)

const (
	// closeWait is how long giving back what is left may take at the end.
	closeWait = 2 * time.Second
	// maxCost is the most that a message can carry: what every reader of JSON
	// keeps exact.
	maxCost = 1<<53 - 1
	// maxName is the longest name of a holder, in bytes.
	maxName = 128
)

// demand is the flags of everything that asks for tokens.
type demand struct {
	Key   []string      `required:"" sep:"none" help:"Key to take tokens of, such as acme/search. Given several times, each call takes of all of them at once, or of none." placeholder:"K"`
	Cost  int64         `help:"Tokens that each call, or line, costs." default:"1" placeholder:"N"`
	Unit  []string      `help:"What each call, or line, costs of another unit, for rules such as 200000/1m unit=tokens. May be given several times." placeholder:"U=N"`
	Class string        `help:"Class of each call, where the policy's lines have classes." placeholder:"C"`
	Wait  time.Duration `help:"How long one call may wait for its turn; 0 is for ever." default:"0s" placeholder:"D"`
	Log   string        `help:"File to append a line of JSON to when a call has ended." placeholder:"FILE"`
	Name  string        `help:"What people call this worker. Without it the machine's name and the process's number." placeholder:"NAME"`
	cli.Server
	cli.Connection
	cli.Logging
}

func (d *demand) validate() error {
	switch _, err := lease.ParseKeys(d.Key...); {
	case err != nil:
		return cli.Misuse("--key: %w", err)
	case d.Cost < 1 || d.Cost > maxCost:
		return cli.Misuse("--cost %d is not from 1 to %d", d.Cost, int64(maxCost))
	case len(d.Name) > maxName || !utf8.ValidString(d.Name):
		return cli.Misuse("--name %.40q is no name; give at most %d bytes of UTF-8", d.Name, maxName)
	case d.Class != "" && lease.ClassFault(d.Class) != "":
		return cli.Misuse("--class: %s; %s", lease.ClassFault(d.Class), lease.ClassRemedy)
	case d.Wait < 0:
		return cli.Misuse("--wait %v is below 0; 0 is for ever", d.Wait)
	}
	return nil
}

// shift is what one run works with.
type shift struct {
	keys    []string
	cost    int64
	units   ration.Units // besides
	wait    time.Duration
	limiter *ration.Limiter
	journal *journal
	tally   *tally
	voice   *cli.Voice
	screen  *cli.Screen
	// tight is the last that is known of a rule that had no turn in time.
	tight atomic.Pointer[tightness]
	// soft ends when no new calls are to be made, hard when those under way are
	// to stop.
	soft, hard context.Context
	// endless says that an interruption is how the run is meant to end.
	endless bool
}

// session connects, does the work, gives everything back, and says in one
// sentence what became of it. verb names the command, noun what a call is.
func (d *demand) session(ctx context.Context, s cli.Streams, verb, noun string, work func(*shift) error) error {
	if err := d.validate(); err != nil {
		return err
	}
	if err := d.Locate(&d.Connection, s); err != nil {
		return err
	}
	units, err := parseUnits(d.Unit)
	if err != nil {
		return err
	}
	screen := cli.NewScreen(s)
	s.Err = screen.Through(s.Err)
	voice := d.Voice(verb, s)
	journal, err := openJournal(d.Log)
	if err != nil {
		return err
	}
	soft, hard, restore := cli.Catch(ctx)
	defer restore()
	client, err := d.connect(soft, voice)
	if err != nil {
		return errors.Join(cli.Stopped(soft, err, "a coordinator answered"), journal.close())
	}
	limiter, err := client.Limiter(d.Key[0], d.Key[1:]...)
	if err != nil {
		return errors.Join(err, journal.close(), client.Close(soft))
	}
	v := &shift{
		keys: limiter.Keys(), cost: d.Cost, units: units, wait: d.Wait, limiter: limiter, journal: journal,
		tally: newTally(), voice: voice, screen: screen, soft: soft, hard: hard,
	}
	defer context.AfterFunc(soft, v.announceEnd)()
	hide := watchProgress(screen, v.tally.progress)
	err = work(v)
	hide()
	d.giveBack(client, v)
	if bad := journal.close(); err == nil && bad != nil {
		err = fmt.Errorf("log: %w", bad)
	}
	if fault := v.tally.fault; fault != nil {
		voice.Complain(fmt.Errorf("the last failure: %w", fault))
	}
	if tardy := v.tally.tardy; tardy != nil {
		voice.Complain(tardy)
	}
	voice.Say("%s", v.tally.summary(noun, v.keys))
	if err != nil {
		return err
	}
	return v.end()
}

// announceEnd tells who sent a signal what it does.
func (v *shift) announceEnd() {
	var s *cli.Signal
	if errors.As(context.Cause(v.soft), &s) {
		v.voice.Say("%v: no new calls are made, and those under way are waited for; once more to stop them", s)
	}
}

// refused tells, once, of a refusal that ends the run.
func (v *shift) refused(err error) {
	first := false
	v.tally.note(func(t *tallied) {
		if first = t.refusal == nil; first {
			t.refusal = err
		}
	})
	if first {
		v.voice.Complain(refused(err))
	}
}

// giveBack returns all leases.
func (d *demand) giveBack(client *ration.Client, v *shift) {
	ctx, cancel := context.WithTimeout(v.hard, closeWait)
	defer cancel()
	if err := client.Close(ctx); err != nil {
		v.voice.Complain(err)
	}
}

// end is the error that the run ends with.
func (v *shift) end() error {
	verdict := v.tally.verdict()
	now, _ := v.tally.look()
	var s *cli.Signal
	switch {
	case errors.As(context.Cause(v.hard), &s):
		return &cli.Exit{Code: s.Code(), Err: now.broken}
	case v.endless || !errors.As(context.Cause(v.soft), &s):
		return verdict
	case s.Number == syscall.SIGINT, now.left():
		return &cli.Exit{Code: s.Code(), Err: now.broken}
	}
	return verdict
}
