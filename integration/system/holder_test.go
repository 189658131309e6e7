package system

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"ration"
	"ration/bus"
	"ration/lease"
)

// playHolder is a worker process that holds: it acquires each of --costs, prints
// a line of log for each, then "holding", and goes on holding until SIGTERM. A
// call whose lease is lost prints "lost" meanwhile. At SIGTERM calls that are
// --unsent are cancelled, the others are cut by Close; then it prints its books.
// With --hoard it speaks the protocol by itself, and holds a lease of as many
// tokens, and of a slot for each of --costs, of which it spends nothing.
func playHolder(args []string) int {
	flags := flag.NewFlagSet("holder", flag.ContinueOnError)
	url := flags.String("nats", "", "")
	name := flags.String("name", "", "")
	key := flags.String("key", "k", "")
	wanted := flags.String("costs", "1", "")
	unsent := flags.Bool("unsent", false, "")
	hoards := flags.Bool("hoard", false, "")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	var tokens []int64
	for text := range strings.SplitSeq(*wanted, ",") {
		cost, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 2
		}
		tokens = append(tokens, cost)
	}
	do := func() error { return hold(*url, *name, *key, tokens, *unsent) }
	if *hoards {
		do = func() error { return hoard(*url, *name, lease.Key(*key), tokens) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func hold(url, name, key string, tokens []int64, unsent bool) error {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	client, err := ration.Connect(url, ration.WithName(name), ration.WithConnectWait(30*time.Second))
	if err != nil {
		return err
	}
	limiter, err := client.Limiter(key)
	if err != nil {
		return err
	}
	var handles []*ration.Handle
	var watches sync.WaitGroup
	for _, cost := range tokens {
		h, err := limiter.Acquire(context.Background(), cost)
		if err != nil {
			return err
		}
		handles = append(handles, h)
		fmt.Printf(`{"key":%q,"cost":%d,"sent":%d}`+"\n", key, cost, h.Sent().UnixNano())
		watches.Go(func() {
			<-h.Context().Done()
			if errors.Is(context.Cause(h.Context()), ration.ErrLeaseLost) {
				fmt.Printf("lost %d\n", cost)
			}
		})
	}
	fmt.Println("holding")
	<-term
	for _, h := range handles {
		if unsent {
			h.Cancel()
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := client.Close(ctx); err != nil {
		return err
	}
	watches.Wait()
	books, err := json.Marshal(client.Stats())
	fmt.Printf("books %s\n", books)
	return err
}

// hoard holds a lease and spends nothing, until it is killed.
func hoard(url, name string, key lease.Key, tokens []int64) error {
	nc, err := bus.Connect(url, bus.ConnectConfig{Wait: 30 * time.Second})
	if err != nil {
		return err
	}
	defer nc.Close()
	client, base := bus.NewClient(nc, bus.ClientConfig{}), time.Now()
	want := lease.Amount{Slots: int64(len(tokens))}
	for _, n := range tokens {
		want.Tokens += n
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	id := lease.ID{Holder: lease.Holder{Name: name, Incarnation: 1}, Seq: 1}
	a, err := client.Acquire(ctx, lease.Request{ID: id, Keys: []lease.Key{key}, Want: want, Need: want, Patience: time.Minute})
	if err != nil {
		return err
	}
	if !a.Granted.Equal(want) {
		return fmt.Errorf("granted %+v", a.Granted)
	}
	fmt.Println("holding")
	for beat := time.NewTicker(500 * time.Millisecond); ; <-beat.C {
		count := lease.Count{ID: id, Keys: []lease.Key{key}}
		_, err := client.Report(ctx, lease.Report{Holder: id.Holder, Sent: time.Since(base), Heartbeat: true, Counts: []lease.Count{count}})
		if err != nil {
			return err
		}
	}
}
