package upstream_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"ration/integration/upstream"
)

func Example() {
	contract, err := upstream.ParseContract("2/1h")
	if err != nil {
		panic(err)
	}
	strict := upstream.New([]upstream.Contract{contract}, 0)
	web := httptest.NewServer(strict)
	defer web.Close()
	for range 3 {
		resp, err := http.Get(web.URL)
		if err != nil {
			panic(err)
		}
		resp.Body.Close()
		fmt.Println(resp.Status)
	}
	fmt.Println("violations:", strict.Report().Violations())
	// Output:
	// 200 OK
	// 200 OK
	// 429 Too Many Requests
	// violations: 1
}
