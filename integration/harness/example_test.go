package harness_test

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"ration/integration/harness"
)

// A test says harness.New(t) instead, which builds, stops and removes by itself.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "ration-bin-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	bin, err := harness.Build(ctx, dir, "strictupstream")
	if err != nil {
		panic(err)
	}
	u, err := bin.Upstream(ctx, "--contract", "5/1s, 12/3s")
	if err != nil {
		panic(err)
	}
	defer u.Close()

	resp, err := http.Get(u.URL)
	if err != nil {
		panic(err)
	}
	resp.Body.Close()
	fmt.Println(resp.Header.Get("RateLimit"))
	// Output:
	// "5/1s";r=4;t=1, "12/3s";r=11;t=3
}
