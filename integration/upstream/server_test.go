package upstream_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ration/integration/oracle"
	"ration/integration/upstream"

	"github.com/stretchr/testify/require"
)

func serve(t *testing.T, delay time.Duration, contracts ...string) (*upstream.Server, *httptest.Server) {
	t.Helper()
	strict := upstream.New(parse(t, contracts...), delay)
	web := httptest.NewServer(strict)
	t.Cleanup(web.Close)
	return strict, web
}

func parse(t *testing.T, contracts ...string) []upstream.Contract {
	t.Helper()
	var parsed []upstream.Contract
	for _, text := range contracts {
		c, err := upstream.ParseContract(text)
		require.NoError(t, err)
		parsed = append(parsed, c)
	}
	return parsed
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(body)
}

func TestKeptContractIsAnswered(t *testing.T) {
	strict, web := serve(t, 0, "3/1h, 4 concurrent")
	for i := range 3 {
		resp, body := get(t, web.URL)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.Equal(t, "ok\n", body)
		require.Equal(t, `"3/1h";q=3;w=3600, "4 concurrent";q=4;qu="concurrent-requests"`, resp.Header.Get("RateLimit-Policy"))
		require.Equal(t, `"3/1h";r=`+strconv.Itoa(2-i)+`;t=3600, "4 concurrent";r=3`, resp.Header.Get("RateLimit"))
		require.Empty(t, resp.Header.Get("Retry-After"))
	}
	require.Zero(t, strict.Report().Violations())
}

func TestBrokenContractIsRefusedAndRemembered(t *testing.T) {
	strict, web := serve(t, 0, "2/1h, 9/1d")
	get(t, web.URL)
	get(t, web.URL)
	resp, body := get(t, web.URL+"/x")
	require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
	require.Equal(t, "3600", resp.Header.Get("Retry-After"))
	require.Equal(t, "application/problem+json", resp.Header.Get("Content-Type"))
	require.Equal(t, `"2/1h";r=0;t=3600, "9/1d";r=6;t=86400`, resp.Header.Get("RateLimit"))
	var problem map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &problem))
	require.Equal(t, []any{"2/1h"}, problem["violated-policies"])

	report := strict.Report()
	require.Equal(t, 1, report.Violations())
	require.EqualValues(t, 3, report.Arrivals)
	require.EqualValues(t, 1, report.Refused)
	found := report.Contracts[0].Violations[0]
	require.Equal(t, upstream.Violation{Path: "/x", Rule: "2/1h", At: report.Last, Load: 3, Limit: 2}, found)
	require.Equal(t, []upstream.RuleReport{
		{Rule: "2/1h", Worst: 3, Violations: 1, Binds: 1}, {Rule: "9/1d", Worst: 3},
	}, report.Contracts[0].Rules)
}

// In a bubble the clock moves by exactly what the test sleeps.
func TestWindowIsHalfOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		strict := upstream.New(parse(t, "2/1s"), 0)
		status := func() (int, string) {
			w := httptest.NewRecorder()
			strict.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			return w.Code, w.Header().Get("Retry-After")
		}
		ok := func() {
			code, _ := status()
			require.Equal(t, http.StatusOK, code)
		}
		ok()
		time.Sleep(400 * time.Millisecond)
		ok()
		time.Sleep(600 * time.Millisecond)
		ok() // the first is exactly one second old
		time.Sleep(400*time.Millisecond - 1)
		code, after := status() // the second is a nanosecond short of it
		require.Equal(t, http.StatusTooManyRequests, code)
		require.Equal(t, "1", after, "never 0")
		report := strict.Report()
		require.Equal(t, 1, report.Violations())
		require.Equal(t, report.Last, report.Contracts[0].Violations[0].At)
		require.Equal(t, int64(1400*time.Millisecond-1), report.Last-report.First)
	})
}

func TestPacedCallersComeAGapApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		strict := upstream.New(parse(t, "10/1s pace"), 0)
		call := func(after time.Duration) int {
			time.Sleep(after)
			w := httptest.NewRecorder()
			strict.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			return w.Code
		}
		require.Equal(t, http.StatusOK, call(0))
		require.Equal(t, http.StatusOK, call(100*time.Millisecond), "exactly a gap later")
		require.Equal(t, http.StatusTooManyRequests, call(100*time.Millisecond-1))
		require.Equal(t, http.StatusTooManyRequests, call(1), "what was refused has arrived too")
		require.Equal(t, http.StatusOK, call(100*time.Millisecond))
		require.Equal(t, 2, strict.Report().Violations())
	})
}

func TestRetryAfterIsEnough(t *testing.T) {
	for _, contract := range []string{"3/2s, 5/7s", "4/3s fixed", "10/20s bucket burst=3", "1/9s bucket burst=1", "2/5s pace",
		"5/4s counter", "1/3s counter", "4/7s fixed tz=Asia/Kathmandu, 9/20s counter"} {
		synctest.Test(t, func(t *testing.T) {
			strict := upstream.New(parse(t, contract), 0)
			refused := 0
			for range 200 {
				w := httptest.NewRecorder()
				strict.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
				if w.Code == http.StatusOK {
					time.Sleep(100 * time.Millisecond)
					continue
				}
				refused++
				after, err := strconv.Atoi(w.Header().Get("Retry-After"))
				require.NoError(t, err)
				time.Sleep(time.Duration(after) * time.Second)
				w = httptest.NewRecorder()
				strict.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
				require.Equal(t, http.StatusOK, w.Code, "%s: %d seconds were told, %s", contract, after, w.Header().Get("RateLimit"))
			}
			require.NotZero(t, refused)
		})
	}
}

// What is told of an estimate is when it next falls below the limit, and of a day
// when the next begins on the wall: here 2000-01-01 in Kathmandu, 5:45 ahead.
func TestWindowsOfOtherKindsTellTheirReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		strict := upstream.New(parse(t, "/counter=10/1m counter", "/day=1/1d fixed tz=Asia/Kathmandu", "/none=0/1m counter, 0/1d fixed"), 0)
		ask := func(path string) (int, string) {
			w := httptest.NewRecorder()
			strict.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
			return w.Code, w.Header().Get("Retry-After")
		}
		time.Sleep(30 * time.Second) // of the first minute
		for range 10 {
			code, _ := ask("/counter")
			require.Equal(t, http.StatusOK, code)
		}
		for i, wait := range []string{"41", "45", "49"} { // the refused ones count, and are to fade too
			code, after := ask("/counter")
			require.Equal(t, http.StatusTooManyRequests, code)
			require.Equal(t, wait, after, "refusal %d", i)
		}
		code, _ := ask("/day")
		require.Equal(t, http.StatusOK, code)
		code, after := ask("/day")
		require.Equal(t, http.StatusTooManyRequests, code)
		require.Equal(t, strconv.Itoa(18*3600+15*60-30), after)
		code, after = ask("/none")
		require.Equal(t, http.StatusTooManyRequests, code)
		require.NotEmpty(t, after)
	})
}

func TestCallersThatWaitAreUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		strict := upstream.New(parse(t, "2 concurrent"), 0)
		call := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			strict.ServeHTTP(w, httptest.NewRequest("GET", "/slow?delay=2s", nil))
			return w
		}
		for range 2 {
			go func() { require.Equal(t, http.StatusOK, call().Code) }()
		}
		synctest.Wait()
		require.EqualValues(t, 2, strict.Report().InFlight)
		refused := call()
		require.Equal(t, http.StatusTooManyRequests, refused.Code)
		require.Equal(t, "1", refused.Header().Get("Retry-After"))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, http.StatusOK, call().Code)

		report := strict.Report()
		require.Zero(t, report.InFlight)
		require.EqualValues(t, 3, report.MaxInFlight)
		require.Equal(t, 1, report.Violations())
	})
}

func TestUpstreamWorksOnForACallerWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		strict := upstream.New(parse(t, "1 concurrent"), 3*time.Second)
		ctx, leave := context.WithCancel(t.Context())
		go strict.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/", nil))
		synctest.Wait()
		leave()
		time.Sleep(3*time.Second - 1)
		synctest.Wait()
		require.EqualValues(t, 1, strict.Report().InFlight)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Zero(t, strict.Report().InFlight)
	})
}

func TestAnsweredCallIsUnderWayNoMore(t *testing.T) {
	strict, web := serve(t, 0, "1 concurrent")
	for range 200 {
		resp, _ := get(t, web.URL)
		require.Equal(t, http.StatusOK, resp.StatusCode)
	}
	require.Zero(t, strict.Report().Violations())
}

func TestEachContractCountsItsOwnPaths(t *testing.T) {
	strict, web := serve(t, 0, "9/1h", "/a=2/1h", "/a/b=1/1h")
	for path, want := range map[string]int{"/a/b": 200, "/ab": 200, "/": 200} {
		resp, _ := get(t, web.URL+path)
		require.Equal(t, want, resp.StatusCode, path)
	}
	resp, _ := get(t, web.URL+"/a/b/c")
	require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
	resp, _ = get(t, web.URL+"/a")
	require.Equal(t, http.StatusTooManyRequests, resp.StatusCode, "refused arrivals count too")
	var arrived []int64
	for _, c := range strict.Report().Contracts {
		arrived = append(arrived, c.Arrivals)
	}
	require.Equal(t, []int64{5, 3, 2}, arrived)
}

func TestManyCallersAtOnceAreAllCounted(t *testing.T) {
	strict, web := serve(t, time.Millisecond, "60/1h", "/k0=1000/1h, 8 concurrent")
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			for range 10 {
				resp, err := http.Get(web.URL + "/k" + strconv.Itoa(i%2))
				if err == nil {
					resp.Body.Close()
				}
				strict.Report()
			}
		})
	}
	callers.Wait()
	report := strict.Report()
	require.EqualValues(t, 80, report.Arrivals)
	require.EqualValues(t, 20, report.Refused)
	require.Len(t, report.Contracts[0].Violations, 20)
	require.Zero(t, report.InFlight)

	_, body := get(t, web.URL+"/arrivals")
	spends, err := oracle.Read(strings.NewReader(body))
	require.NoError(t, err)
	require.Len(t, spends, 80)
	require.Len(t, oracle.Under(spends, "/k0"), 40)
	require.Len(t, oracle.Violations(spends, oracle.MustRules("60/1h")), 20, "the oracle sees what the upstream saw")
	require.Empty(t, oracle.Violations(spends, oracle.MustRules("8 concurrent")))
}

func TestReportTravelsAsJSON(t *testing.T) {
	strict, web := serve(t, 0, "1/1h")
	get(t, web.URL)
	get(t, web.URL)
	resp, body := get(t, web.URL+"/report")
	require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
	var report upstream.Report
	require.NoError(t, json.Unmarshal([]byte(body), &report))
	require.Equal(t, strict.Report(), report)
	require.Contains(t, body, `"first": "1`, "instants pass 2^53, so they are strings")
}

func TestBadDelayAndBadContractAreErrors(t *testing.T) {
	strict, web := serve(t, 0)
	resp, body := get(t, web.URL+"?delay=soon")
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	require.Contains(t, body, "soon")
	require.Zero(t, strict.Report().Arrivals)
	for _, text := range []string{"", "/search", "/search=five", "five", "5/1s,"} {
		_, err := upstream.ParseContract(text)
		require.Error(t, err, text)
	}
}

// A call says what it costs of other units, and each rule counts its own.
func TestUnitsAreCountedByTheirOwnRules(t *testing.T) {
	strict, web := serve(t, 0, "100/1h, 1000/1h unit=tokens")
	for _, query := range []string{"?unit=tokens=600", "", "?unit=images=5000", "?unit=tokens=400"} {
		resp, _ := get(t, web.URL+"/chat"+query)
		require.Equal(t, http.StatusOK, resp.StatusCode, query)
	}
	resp, body := get(t, web.URL+"/chat?unit=tokens=1")
	require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
	require.Contains(t, body, "1000/1h unit=tokens")
	require.NotContains(t, body, `"100/1h"`)
	require.Equal(t, "3600", resp.Header.Get("Retry-After"))
	require.Contains(t, resp.Header.Get("RateLimit-Policy"), `"1000/1h unit=tokens";q=1000;w=3600;qu="tokens"`)

	resp, _ = get(t, web.URL+"/chat")
	require.Equal(t, http.StatusOK, resp.StatusCode, "it costs no tokens")
	resp, body = get(t, web.URL+"/chat?unit=tokens")
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	require.Contains(t, body, "is not NAME=N")

	require.Equal(t, 1, strict.Report().Violations())
	_, arrivals := get(t, web.URL+"/arrivals")
	spends, err := oracle.Read(strings.NewReader(arrivals))
	require.NoError(t, err)
	require.Len(t, oracle.Violations(spends, oracle.MustRules("1000/1h unit=tokens")), 2, "the one refused, and what came after it")
}
