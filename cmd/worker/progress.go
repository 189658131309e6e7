package main

import (
	"time"

	"ration/cmd/internal/cli"
)

// redrawEvery is how often the progress line changes: as fast as one can read.
const redrawEvery = 200 * time.Millisecond

// watchProgress redraws the line until the function it gives is called.
func watchProgress(screen *cli.Screen, line func() string) (stop func()) {
	if !screen.Live() {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(redrawEvery)
		defer tick.Stop()
		for {
			screen.Draw(line())
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	return func() {
		close(done)
		<-ended
		screen.Erase()
	}
}
