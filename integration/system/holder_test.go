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
)

// playHolder is a worker process that holds: it acquires each of --costs, prints
// a line of log for each, then "holding", and goes on holding until SIGTERM. A
// call whose lease is lost prints "lost" meanwhile. At SIGTERM calls that are
// --unsent are cancelled, the others are cut by Close; then it prints its books.
func playHolder(args []string) int {
	flags := flag.NewFlagSet("holder", flag.ContinueOnError)
	url := flags.String("nats", "", "")
	name := flags.String("name", "", "")
	key := flags.String("key", "k", "")
	wanted := flags.String("costs", "1", "")
	unsent := flags.Bool("unsent", false, "")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if err := hold(*url, *name, *key, *wanted, *unsent); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func hold(url, name, key, wanted string, unsent bool) error {
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
	for text := range strings.SplitSeq(wanted, ",") {
		cost, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return err
		}
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
