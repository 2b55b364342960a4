package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/server"
	"github.com/twinsrv/twinsrv/snapshot"
)

// filled serves a new store until it holds something of everything, and returns
// what it answers.
func filled(t *testing.T, at string) (answers string) {
	t.Helper()
	p := startWith(t, "--store", at)
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
	p.must(201, "PUT", "/v1/pods/lazy", `{"type":"document","durability":"async:20ms","create":{"by":["set"]}}`)
	for i := range 20 {
		name := fmt.Sprintf("/v1/pods/docs/entities/%%C3%%A4%%2F%d/state", i)
		p.must(201, "PUT", name, fmt.Sprintf(`{"i":%d,"text":"%s"}`, i, strings.Repeat("x", i*100)), "Idempotency-Key", fmt.Sprint("id", i))
		p.must(200, "PATCH", name, `{"more":1.50}`)
		if i%5 == 0 {
			p.must(204, "DELETE", strings.TrimSuffix(name, "/state"), "")
		}
	}
	p.must(201, "PUT", "/v1/pods/lazy/entities/a/state", `{"n":1}`)
	p.must(200, "PUT", "/v1/pods/lazy/entities/a/state", `{"n":2}`)
	p.terminate()
	return served(t, at)
}

// served starts a server on a store and returns what it answers.
func served(t *testing.T, at string) string {
	t.Helper()
	p := startWith(t, "--store", at)
	var all strings.Builder
	for _, path := range []string{"/v1/pods", "/v1/pods/docs/entities", "/v1/pods/lazy/entities", "/v1/quarantine"} {
		all.WriteString(p.must(200, "GET", path, "") + "\n")
	}
	// A repeat is known to be one.
	name := "/v1/pods/docs/entities/%C3%A4%2F1/state"
	all.WriteString(p.must(201, "PUT", name, `{"i":1,"text":"`+strings.Repeat("x", 100)+`"}`, "Idempotency-Key", "id1"))
	p.terminate()
	return all.String()
}

type checkReport struct {
	Store, Damaged, Failed string
	OK                     bool
	Position               uint64
	Pods                   []struct {
		Pod                    string
		Records, Rows, Changes int
		Bytes                  int64
	}
	Counts   map[string]int
	Problems []struct{ Kind, Pod, Name, Error string }
}

// checked is the report of a store in which nothing is wrong.
func checked(t *testing.T, at string) (r checkReport) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(succeeds(t, "store", "check", "--store", at, "--json")), &r))
	require.True(t, r.OK)
	require.Empty(t, r.Problems)
	return r
}

// A store that goes through every kind and back is what it was.
func TestCopyAround(t *testing.T) {
	dir := t.TempDir()
	way := []string{"bolt:" + filepath.Join(dir, "first"), "json:" + filepath.Join(dir, "json")}
	t.Run("files", func(t *testing.T) { copyAround(t, append(way, "bolt:"+filepath.Join(dir, "last"))) })
	t.Run("postgres", func(t *testing.T) {
		dir := t.TempDir()
		copyAround(t, []string{
			"bolt:" + filepath.Join(dir, "first"), "json:" + filepath.Join(dir, "json"), freshPostgres(t), "bolt:" + filepath.Join(dir, "last"),
		})
	})
}

func copyAround(t *testing.T, way []string) {
	t.Helper()
	answers := filled(t, way[0])
	first := checked(t, way[0])
	require.Len(t, first.Pods, 3, "docs, lazy, and the definitions")
	for i, from := range way[:len(way)-1] {
		to := way[i+1]
		said := succeeds(t, "store", "copy", from, to)
		require.Regexp(t, `verified [1-9]\d* records, [1-9]\d* rows and [1-9]\d* changes`, said)
		require.NotContains(t, said, "hunter2")
		r := checked(t, to)
		require.GreaterOrEqual(t, r.Position, first.Position)
		require.Equal(t, first.Pods, r.Pods)
		require.Contains(t, fails(t, "store", "copy", from, to), "not empty")
		require.Contains(t, fails(t, "store", "copy", from, from), "into itself")
	}
	for _, at := range way {
		require.Equal(t, answers, served(t, at), at)
	}
}

// A copy that was interrupted is not served, and goes on when it is run again.
func TestCopyGoesOn(t *testing.T) {
	dir := t.TempDir()
	from, to := "bolt:"+filepath.Join(dir, "from"), "json:"+filepath.Join(dir, "to")
	answers := filled(t, from)
	source, err := server.OpenStore(t.Context(), from, nil)
	require.NoError(t, err)
	destination, err := server.OpenStore(t.Context(), to, nil)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = persist.Copy(ctx, source, destination, persist.CopyOptions{Progress: func(p persist.CopyProgress) {
		if p.Doing == "changes" {
			cancel()
		}
	}})
	require.Error(t, err)
	require.NoError(t, source.Close())
	require.NoError(t, destination.Close())

	require.Contains(t, fails(t, "--store", to, "--listen", "127.0.0.1:0"), "not finished")
	require.Contains(t, fails(t, "store", "check", "--store", to), "not finished")
	require.Contains(t, succeeds(t, "store", "copy", from, to), "going on with an earlier copy")
	require.Equal(t, answers, served(t, to))
}

func TestCopyOfDamage(t *testing.T) {
	data, _ := damagedStore(t)
	from := "bolt:" + data
	to := "bolt:" + filepath.Join(t.TempDir(), "to")
	stopped := fails(t, "store", "copy", from, to)
	require.Contains(t, stopped, "bad one")
	require.Contains(t, stopped, "--skip-unreadable")
	code, said, stderr := command(t, "store", "copy", "--skip-unreadable", from, to)
	require.Zero(t, code, stderr)
	require.Contains(t, said, "left out because they cannot be read: ")
	require.Contains(t, said, "unreadable record: docs/bad one: ")
	checked(t, to)
	p := startWith(t, "--store", to)
	p.must(404, "GET", badOne, "")
	p.must(200, "GET", "/v1/pods/docs/entities/whole", "")
	p.terminate()

	for _, args := range [][]string{{"bolt:x"}, {"bolt:" + data, "memory:"}, {"memory:", "bolt:x"}, {"x", "bolt:y"}, {"bolt:y", "x"}} {
		code, _, _ := command(t, append([]string{"store", "copy"}, args...)...)
		require.Equal(t, 2, code, args)
	}
	require.Contains(t, fails(t, "store", "copy", "bolt:"+filepath.Join(data, "none"), to), "there is no store")
}

// The check finds what is wrong, says so and ends with 1. It changes nothing.
func TestCheckFindsDamage(t *testing.T) {
	data, mend := damagedStore(t)
	at := "bolt:" + data
	code, text, stderr := command(t, "store", "check", "--store", at)
	require.Equal(t, 1, code)
	require.Contains(t, text, "  unreadable record: docs/bad one: ")
	require.Contains(t, text, "  unreadable change at position ")
	require.Regexp(t, `(?m)^docs +2 +0 +`, text)
	require.Contains(t, stderr, "--skip-unreadable")
	var r checkReport
	code, text, _ = command(t, "store", "check", "--data", data, "--json")
	require.Equal(t, 1, code)
	require.NoError(t, json.Unmarshal([]byte(text), &r))
	require.False(t, r.OK)
	require.Equal(t, 1, r.Counts["unreadable record"])
	require.Equal(t, at, r.Store)
	require.Equal(t, "bad one", r.Problems[0].Name)
	mend()
	require.Contains(t, succeeds(t, "store", "check", "--data", data), "everything can be read")

	p := start(t, data)
	require.Contains(t, fails(t, "store", "check", "--data", data), "in use")
	p.terminate()
}

// Rows without an entity and records of unknown pods are found, too.
func TestCheckFindsWhatBelongsToNothing(t *testing.T) {
	at := "json:" + filepath.Join(t.TempDir(), "data")
	store, err := server.OpenStore(t.Context(), at, nil)
	require.NoError(t, err)
	key := persist.Key{Pod: "lost", Name: "a\x1b[31m"}
	require.NoError(t, store.(persist.Importer).Import(t.Context(), persist.Batch{
		Records: []persist.Stored{{Key: key, Record: snapshot.Record{Life: 1, Revision: 1, Reserved: 1, Codec: "json", State: []byte(`{}`)}}},
	}))
	require.NoError(t, store.Close())
	code, text, _ := command(t, "store", "check", "--store", at)
	require.Equal(t, 1, code)
	require.Contains(t, text, "orphaned record")
	require.NotContains(t, text, "\x1b")
	succeeds(t, "store", "check", "--store", at, "--actors", "lost")
}

// A file too damaged to be served is checked and copied as far as it goes.
func TestDamagedFile(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	p := start(t, data)
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
	for i := range 40 {
		p.must(201, "PUT", entityOf(i), `{"text":"`+strings.Repeat("x", 2000)+`"}`)
	}
	p.terminate()
	path := filepath.Join(data, "twinsrv.db")
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	noise := bytes.Repeat([]byte("\xa5\x5a\xff\x01noise!!!"), 4096)[:4096]
	damaged, saved := 0, 0
	for page := 2; page < len(whole)/4096 && damaged < 6; page++ {
		spoiled := bytes.Clone(whole)
		copy(spoiled[page*4096:], noise)
		require.NoError(t, os.WriteFile(path, spoiled, 0o600))
		if openAndClose(t, data) == nil {
			continue
		}
		damaged++
		code, text, stderr := command(t, "store", "check", "--data", data)
		require.Equal(t, 1, code)
		require.Contains(t, text+stderr, "damaged")
		to := filepath.Join(dir, fmt.Sprint("to", page))
		if code, out, stderr := command(t, "store", "copy", "--skip-unreadable", "bolt:"+data, "bolt:"+to); code == 0 {
			saved++
			code, text, _ := command(t, "store", "check", "--store", "bolt:"+to, "--json")
			var r checkReport
			require.NoError(t, json.Unmarshal([]byte(text), &r))
			require.Equal(t, code == 0, r.OK)
			for _, p := range r.Problems {
				require.EqualValues(t, persist.OrphanedRecord, p.Kind, "the pod's definition was on the page")
				require.Contains(t, out, string(persist.LostPart))
				require.Contains(t, stderr, "has to be defined again")
			}
		} else {
			require.Contains(t, stderr, "damaged")
		}
	}
	require.Positive(t, damaged)
	t.Logf("of %d damaged files %d could be copied in part", damaged, saved)
}
