package apitest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/pod"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const rivals = 8

// write is a way to write under a condition. Its body has the writer's number.
type write struct {
	method, path, content, body string
}

var writes = []write{
	{http.MethodPut, "/state", "application/json", `{"by":%d}`},
	{http.MethodPatch, "/state", "application/merge-patch+json", `{"by":%d}`},
	{http.MethodPatch, "/state", "application/json-patch+json", `[{"op":"add","path":"/by","value":%d}]`},
	{http.MethodPut, "/state/by", "application/json", `%d`},
	{http.MethodPost, "/messages/merge", "application/json", `{"by":%d}`},
	{http.MethodDelete, "", "", ""},
}

// answer is what one writer got.
type answer struct {
	status int
	code   string
	etag   string
	delete bool
	err    error
}

// api is a server whose only entity is raced for.
type api struct {
	t      *testing.T
	client *http.Client
	url    string
}

func newAPI(t *testing.T) *api {
	t.Helper()
	sys := actor.NewSystem("etags", actor.Config{})
	pods, err := pod.Open(sys, memory.Open(memory.Config{}), pod.Config{})
	require.NoError(t, err)
	_, _, _, err = pods.Declare(context.Background(), "docs", pod.Definition{Type: "document"})
	require.NoError(t, err)
	handler := httpapi.New(pods, httpapi.Config{})
	srv := httptest.NewServer(handler)
	transport := &http.Transport{MaxIdleConnsPerHost: 2 * rivals}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		srv.Close()
		handler.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		require.NoError(t, pods.Close(ctx))
		require.NoError(t, sys.Stop(ctx))
	})
	return &api{t: t, client: &http.Client{Transport: transport}, url: srv.URL + "/v1/pods/docs/entities/prize"}
}

// do writes under a condition, if there is one.
func (a *api) do(w write, by int, ifMatch string) (out answer) {
	body := w.body
	if body != "" {
		body = fmt.Sprintf(body, by)
	}
	req, err := http.NewRequest(w.method, a.url+w.path, strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	if w.content != "" {
		req.Header.Set("Content-Type", w.content)
	}
	if ifMatch != "" {
		req.Header.Set("If-Match", ifMatch)
	}
	res, err := a.client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	out = answer{status: res.StatusCode, etag: res.Header.Get("ETag"), delete: w.method == http.MethodDelete, err: err}
	if res.StatusCode >= 400 {
		var problem struct{ Code string }
		_ = json.Unmarshal(text, &problem)
		out.code = problem.Code
	}
	return out
}

// state returns who wrote last, and the entity tag.
func (a *api) state() (by int, etag string, found bool) {
	a.t.Helper()
	res, err := a.client.Get(a.url + "/state")
	require.NoError(a.t, err)
	defer res.Body.Close()
	var s struct{ By int }
	if res.StatusCode == http.StatusNotFound {
		_, _ = io.Copy(io.Discard, res.Body)
		return 0, "", false
	}
	require.Equal(a.t, http.StatusOK, res.StatusCode)
	require.NoError(a.t, json.NewDecoder(res.Body).Decode(&s))
	return s.By, res.Header.Get("ETag"), true
}

// TestOneWriterWins: of writers that have the same entity tag exactly one
// writes, whatever their ways to write; and a tag of an earlier life never
// matches, though its revision comes again.
func TestOneWriterWins(t *testing.T) {
	rounds := 300
	if text := os.Getenv("TWINSRV_ETAG_ROUNDS"); text != "" {
		var err error
		rounds, err = strconv.Atoi(text)
		require.NoError(t, err, "TWINSRV_ETAG_ROUNDS is the number of rounds")
	}
	a := newAPI(t)
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	made := a.do(writes[0], 0, "")
	require.Equal(t, http.StatusCreated, made.status)
	etag, earlier, wins := made.etag, []string(nil), map[int]int{}
	lives, outdated := 0, 0
	for round := range rounds {
		answers := make([]answer, rivals)
		stale := make([]bool, rivals)
		var all sync.WaitGroup
		for i := range answers {
			how, tag := writes[rng.IntN(len(writes)-1)], etag
			if rng.IntN(10) == 0 {
				how = writes[len(writes)-1]
			}
			if len(earlier) > 0 && rng.IntN(4) == 0 {
				tag, stale[i] = earlier[rng.IntN(len(earlier))], true
			}
			all.Go(func() { answers[i] = a.do(how, round*rivals+i+1, tag) })
		}
		all.Wait()
		winner, fresh := -1, 0
		for i, got := range answers {
			require.NoError(t, got.err)
			if stale[i] {
				outdated++
			} else {
				fresh++
			}
			if got.status < 300 {
				require.False(t, stale[i], "round %d: %q of an earlier life matched", round, earlier)
				require.Equal(t, -1, winner, "round %d: writers %d and %d have won: %+v", round, winner, i, answers)
				winner = i
			}
		}
		require.True(t, winner >= 0 || fresh == 0, "round %d: nobody of %d has won: %+v", round, fresh, answers)
		deleted := winner >= 0 && answers[winner].delete
		for i, got := range answers {
			if i != winner {
				require.True(t, got.status == http.StatusPreconditionFailed && got.code == "stale_revision" || deleted && got.status == http.StatusNotFound,
					"round %d: writer %d: %+v", round, i, got)
			}
		}
		by, now, found := a.state()
		switch {
		case deleted:
			require.False(t, found)
			lives++
			if earlier = append(earlier, etag); len(earlier) > 100 {
				earlier = earlier[1:]
			}
			made = a.do(writes[0], 0, "")
			require.Equal(t, http.StatusCreated, made.status)
			etag = made.etag
		case winner >= 0:
			require.Equal(t, round*rivals+winner+1, by)
			require.Equal(t, answers[winner].etag, now)
			require.NotEqual(t, etag, now)
			if rng.IntN(8) == 0 {
				earlier = append(earlier[:len(earlier):len(earlier)], again(earlier, now)...)
			}
			etag = now
		default:
			require.Equal(t, etag, now)
		}
		wins[winner]++
	}
	t.Logf("%d rounds of %d writers, wins by writer: %v; %d lives ended, %d writes with tags of earlier ones", rounds, rivals, wins, lives, outdated)
}

// again returns a tag of an earlier life with the revision of one of this life.
func again(earlier []string, now string) []string {
	if len(earlier) == 0 {
		return nil
	}
	life, _, _ := strings.Cut(earlier[len(earlier)-1], "-")
	_, revision, _ := strings.Cut(now, "-")
	return []string{life + "-" + revision}
}
