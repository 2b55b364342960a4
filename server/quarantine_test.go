package server_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// marker stands in the state of the entity that is to be damaged.
const marker = "rust-eats-this"

// damagedStore has the documents whole and "bad one", whose record in the
// store's file has a flipped bit. mend undoes that.
func damagedStore(t *testing.T) (data string, mend func()) {
	t.Helper()
	data = t.TempDir()
	p := start(t, data)
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
	p.must(201, "PUT", "/v1/pods/docs/entities/bad%20one/state", `{"text":"`+marker+`"}`)
	p.must(201, "PUT", "/v1/pods/docs/entities/whole/state", `{"text":"fine"}`)
	p.terminate()
	path := filepath.Join(data, "twinsrv.db")
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	bad := bytes.ReplaceAll(good, []byte(marker), []byte("sust-eats-this"))
	require.NotEqual(t, good, bad)
	require.NoError(t, os.WriteFile(path, bad, 0o600))
	return data, func() {
		bad, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(bad, []byte("sust-eats-this"), []byte(marker)), 0o600))
	}
}

const badOne = "/v1/pods/docs/entities/bad%20one"

// A damaged record blocks its entity alone, which can be looked at, tried again
// and removed from the command line.
func TestQuarantineCommands(t *testing.T) {
	data, mend := damagedStore(t)
	p := start(t, data)
	require.JSONEq(t, `{"items":[]}`, succeeds(t, "quarantine", "list", "--server", p.url), "nobody has read it yet")
	require.Equal(t, "no entity was found to be unreadable\n", succeeds(t, "quarantine", "list", "--server", p.url, "-o", "table"))
	require.Contains(t, p.must(503, "POST", badOne+"/messages/merge", `{"a":1}`), `"quarantined"`)
	p.must(200, "PATCH", "/v1/pods/docs/entities/whole/state", `{"a":1}`)
	require.Contains(t, p.must(200, "GET", "/healthz", ""), `"quarantined":1`)

	t.Setenv("TWINSRV_SERVER", p.url)
	table := succeeds(t, "quarantine", "list", "--output", "table")
	require.Regexp(t, `^POD +NAME +REASON\ndocs +bad one +.*\n$`, table)
	var list struct{ Items []map[string]string }
	require.NoError(t, json.Unmarshal([]byte(succeeds(t, "quarantine", "list", "-o", "json")), &list))
	require.Len(t, list.Items, 1)
	require.Equal(t, "bad one", list.Items[0]["name"])

	require.Contains(t, succeeds(t, "quarantine", "show", "docs", "bad one"), `"quarantined"`)
	shown := succeeds(t, "quarantine", "show", "docs", "bad one", "-o", "table")
	require.Contains(t, shown, "entity    docs/bad one\n")
	require.Contains(t, shown, "cannot be read either")
	require.Contains(t, fails(t, "quarantine", "retry", "docs", "bad one"), "it still cannot be read")
	require.Contains(t, fails(t, "quarantine", "remove", "docs", "whole"), "not_quarantined")
	p.must(200, "GET", "/v1/pods/docs/entities/whole", "")
	p.terminate()

	// Mended it is there again.
	mend()
	p = start(t, data)
	t.Setenv("TWINSRV_SERVER", p.url)
	require.Contains(t, p.must(200, "GET", badOne+"/state", ""), marker)
	require.Contains(t, succeeds(t, "quarantine", "retry", "docs", "bad one"), marker)
	require.Contains(t, fails(t, "quarantine", "show", "docs", "bad one"), "not_quarantined")
	p.terminate()
}

func TestQuarantineRemove(t *testing.T) {
	data, _ := damagedStore(t)
	p := start(t, data)
	t.Setenv("TWINSRV_SERVER", p.url)
	require.JSONEq(t, `{"pod":"docs","name":"bad one","removed":true}`, succeeds(t, "quarantine", "remove", "docs", "bad one"))
	p.must(404, "GET", badOne, "")
	p.kill()
	p = start(t, data)
	t.Setenv("TWINSRV_SERVER", p.url)
	p.must(404, "GET", badOne, "")
	require.JSONEq(t, `{"items":[]}`, succeeds(t, "quarantine", "list"))
	p.must(201, "PUT", badOne+"/state", `{}`)
	p.terminate()

	for _, args := range [][]string{{"show", "docs"}, {"retry"}, {"remove", "docs", "a", "b"}, {"list", "-o", "xml"}, {"nonsense"}, {}} {
		code, _, _ := command(t, append([]string{"quarantine"}, args...)...)
		require.Equal(t, 2, code, "%v", args)
	}
	require.Contains(t, fails(t, "quarantine", "list"), "no server answers at "+p.url)
	require.Contains(t, fails(t, "quarantine", "show", "docs", "BAD", "--server", "http://"), "such as")
}

// A repeat of a message with an id has no second effect, whenever the server was
// killed in between.
func TestMessageIDsOverKills(t *testing.T) {
	data := t.TempDir()
	p := start(t, data)
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
	const list = "/v1/pods/docs/entities/list"
	p.must(201, "PUT", list+"/state", `{"all":[]}`)
	type answer struct{ text, etag string }
	firsts := map[string]answer{}
	// append1 adds a number to a list, which shows how often it was done.
	append1 := func(n, id string) {
		status, text, h, err := p.send("POST", list+"/messages/set", `{"pointer":"/all/-","value":`+n+`}`, "Idempotency-Key", id)
		if err != nil {
			return // killed meanwhile
		}
		require.Equal(t, 200, status, text)
		a := answer{text, h.Get("ETag")}
		if first, repeated := firsts[id]; repeated {
			require.Equal(t, first, a)
		}
		firsts[id] = a
	}
	for round := range 5 {
		id, n := "id"+string(rune('a'+round)), string(rune('1'+round))
		killed := make(chan struct{})
		if round%2 == 0 {
			go func() { p.kill(); close(killed) }() // somewhere before, in or after it
		}
		append1(n, id)
		if round%2 == 0 {
			<-killed
			p = start(t, data)
		}
		for range 2 {
			append1(n, id)
		}
	}
	p.kill()
	p = start(t, data)
	for id := range firsts {
		append1(string(rune('1'+id[2]-'a')), id)
	}
	require.Len(t, firsts, 5)
	require.Equal(t, `{"all":[1,2,3,4,5]}`, p.must(200, "GET", list+"/state", ""))
	require.Contains(t, p.must(422, "POST", list+"/messages/set", `{"pointer":"/all/-","value":6}`, "Idempotency-Key", "ida"), "message_id_reused")
	p.terminate()
}
