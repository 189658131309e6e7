package redisbackend_test

import (
	"fmt"

	"ration/redisbackend"
)

// A coordinator is given the mirror of its partition; the password is nowhere shown.
func Example() {
	server, err := redisbackend.Open("redis://ration:secret@127.0.0.1:6379", redisbackend.DefaultConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	mirror := server.Mirror("default", 0)
	_ = mirror // is the Mirror and the Elector of a coordinator.Config
	fmt.Println(server)
	// Output: redis://ration:xxxxx@127.0.0.1:6379
}
