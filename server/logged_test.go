package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist/bolt"
	"github.com/twinsrv/twinsrv/persist/commitlog"
	"github.com/twinsrv/twinsrv/server"
)

// killedStore is a store in bolt whose server was killed: the file has some
// documents, and the log alone has their newest states and one more. It answers
// with what it acknowledged.
func killedStore(t *testing.T) (data, acknowledged string) {
	t.Helper()
	for range 10 {
		data = filepath.Join(t.TempDir(), "data")
		p := start(t, data)
		p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
		for i := range 40 {
			p.must(201, "PUT", entityOf(i), `{"text":"`+strings.Repeat("x", 2000)+`"}`)
		}
		p.terminate()
		p = start(t, data)
		began := time.Now()
		for i := range 20 {
			p.must(200, "PUT", entityOf(i), `{"n":1}`)
		}
		p.must(201, "PUT", entityOf(40), `{"n":1}`)
		acknowledged = answers(p)
		p.kill()
		if time.Since(began) < time.Second { // before that nothing is folded
			_, err := bolt.Open(filepath.Join(data, "twinsrv.db"), bolt.Config{})
			require.ErrorIs(t, err, bolt.ErrLogged)
			return data, acknowledged
		}
	}
	require.Fail(t, "this machine is too slow to write 21 documents within a second")
	return "", ""
}

func answers(p *process) string {
	p.t.Helper()
	return p.must(200, "GET", "/v1/pods/docs/entities?limit=1000", "")
}

// cloned is a copy of a data folder.
func cloned(t *testing.T, data string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.CopyFS(to, os.DirFS(data)))
	return to
}

func inData(data string) (file, log string) {
	return filepath.Join(data, "twinsrv.db"), filepath.Join(data, "commit-log")
}

// The log is in front of a store unless it is switched off, and can be switched
// off and on at any time.
func TestCommitLogIsSwitched(t *testing.T) {
	plain := t.TempDir()
	p := startWith(t, "--data", plain, "--no-commit-log")
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
	p.kill()
	_, log := inData(plain)
	require.NoDirExists(t, log)
	file, err := bolt.Open(filepath.Join(plain, "twinsrv.db"), bolt.Config{})
	require.NoError(t, err, "no log is in front")
	require.NoError(t, file.Close())

	data, acknowledged := killedStore(t)
	p = startWith(t, "--data", data, "--no-commit-log")
	require.Contains(t, p.stderr.String(), "the commit log is switched off")
	require.Contains(t, p.stderr.String(), "folded and not used any more")
	require.Equal(t, acknowledged, answers(p))
	p.must(200, "PUT", entityOf(0), `{"n":2}`)
	acknowledged = answers(p)
	p.kill()
	p = startWith(t, "--data", data, "--no-commit-log")
	require.NotContains(t, p.stderr.String(), "commit log", "there is nothing to be said")
	require.Equal(t, acknowledged, answers(p))
	p.kill()

	p = start(t, data)
	require.Equal(t, acknowledged, answers(p))
	p.must(200, "PUT", entityOf(0), `{"n":3}`)
	acknowledged = answers(p)
	p.kill()
	t.Setenv("TWINSRV_COMMIT_LOG", "false")
	p = start(t, data)
	require.Contains(t, p.stderr.String(), "the commit log is switched off")
	require.Equal(t, acknowledged, answers(p))
	p.terminate()
	_, log = inData(data)
	require.NoError(t, os.RemoveAll(log), "it is not needed any more")
	p = startWith(t, "--data", data, "--commit-log")
	require.DirExists(t, log, "a flag goes before its variable")
	require.Equal(t, acknowledged, answers(p))
	p.terminate()
}

// Programs that embed the server get the log, too.
func TestCommitLogOfOpen(t *testing.T) {
	for _, without := range []bool{false, true} {
		s, err := server.Open(t.Context(), server.Config{Data: t.TempDir(), NoCommitLog: without})
		require.NoError(t, err)
		if service := s.Pods().Committer().Service(); without {
			require.IsType(t, (*bolt.Store)(nil), service)
		} else {
			require.IsType(t, (*commitlog.Store)(nil), service)
			require.IsType(t, (*bolt.Store)(nil), service.(*commitlog.Store).Behind())
		}
		require.NoError(t, s.Close(t.Context()))
	}
	store, err := server.OpenStore(t.Context(), "bolt:"+t.TempDir(), nil)
	require.NoError(t, err)
	require.IsType(t, (*commitlog.Store)(nil), store)
	require.NoError(t, store.Close())
}

// No command overlooks what the log alone has.
func TestCommandsReadTheLog(t *testing.T) {
	killed, acknowledged := killedStore(t)
	const position = uint64(62) // the pod, 40 documents, 20 changes, one more
	served := func(t *testing.T, at string) {
		t.Helper()
		p := startWith(t, "--store", at)
		require.Equal(t, acknowledged, answers(p))
		p.terminate()
	}
	t.Run("check", func(t *testing.T) {
		data := cloned(t, killed)
		r := checked(t, "bolt:"+data)
		require.Equal(t, position, r.Position)
		require.Equal(t, 41, r.Pods[1].Records)
		served(t, "bolt:"+data)
	})
	t.Run("copy", func(t *testing.T) {
		data := cloned(t, killed)
		for _, kind := range inFolders() {
			to := kind + ":" + filepath.Join(t.TempDir(), "to")
			succeeds(t, "store", "copy", "bolt:"+data, to)
			require.GreaterOrEqual(t, checked(t, to).Position, position)
			served(t, to)
		}
	})
	t.Run("copy into", func(t *testing.T) {
		data := cloned(t, killed)
		require.Contains(t, fails(t, "store", "copy", "json:"+someJSON(t), "bolt:"+data), "not empty")
		served(t, "bolt:"+data)
	})
	t.Run("backup", func(t *testing.T) {
		data, file := cloned(t, killed), filepath.Join(t.TempDir(), "backup")
		succeeds(t, "store", "backup", file, "--data", data)
		to := filepath.Join(t.TempDir(), "to")
		succeeds(t, "store", "restore", file, "--data", to)
		served(t, "bolt:"+to)
	})
	t.Run("compact", func(t *testing.T) {
		data := cloned(t, killed)
		succeeds(t, "store", "compact", "--data", data)
		served(t, "bolt:"+data)
	})
	t.Run("discard-log", func(t *testing.T) {
		data := cloned(t, killed)
		require.Contains(t, succeeds(t, "store", "discard-log", "--data", data, "--yes"), "needs nothing to be discarded")
		served(t, "bolt:"+data)
	})
	t.Run("backup of a server", func(t *testing.T) {
		file, to := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "to")
		p := start(t, cloned(t, killed))
		succeeds(t, "store", "backup", file, "--server", p.url)
		p.kill()
		succeeds(t, "store", "restore", file, "--data", to)
		served(t, "bolt:"+to)
	})
}

// someJSON is a store in JSON files with something in it.
func someJSON(t *testing.T) string {
	t.Helper()
	data := filepath.Join(t.TempDir(), "json")
	p := startWith(t, "--store", "json:"+data)
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
	p.terminate()
	return data
}

// A backup is not restored beside a log of another store, and no store is made
// there.
func TestRestoreBesideALog(t *testing.T) {
	data, acknowledged := killedStore(t)
	backup := filepath.Join(t.TempDir(), "backup")
	succeeds(t, "store", "backup", backup, "--data", data)
	file, log := inData(data)
	require.NoError(t, os.Remove(file))
	said := fails(t, "store", "restore", backup, "--data", data)
	require.Contains(t, said, log)
	require.Contains(t, said, "move it")
	require.Contains(t, fails(t, "--data", data, "--listen", "127.0.0.1:0"), "move the folder of the log away")
	require.Contains(t, fails(t, "--data", data, "--listen", "127.0.0.1:0", "--no-commit-log"), "move the folder of the log away")
	require.NoFileExists(t, file)
	require.NoError(t, os.Rename(log, log+".old"))
	succeeds(t, "store", "restore", backup, "--data", data)
	p := start(t, data)
	require.Equal(t, acknowledged, answers(p))
	p.terminate()
}

// badLogs are ways to lose a log.
func badLogs() map[string]func(t *testing.T, data string) {
	return map[string]func(t *testing.T, data string){
		"damaged": func(t *testing.T, data string) {
			_, log := inData(data)
			spoiled := 0
			segments, err := os.ReadDir(log)
			require.NoError(t, err)
			for _, s := range segments {
				path := filepath.Join(log, s.Name())
				b, err := os.ReadFile(path)
				require.NoError(t, err)
				if at := bytes.Index(b, []byte(`{"n":1}`)); at >= 0 {
					b[at+5] = '2' // the first of the groups
					spoiled++
				}
				require.NoError(t, os.WriteFile(path, b, 0o600))
			}
			require.Positive(t, spoiled)
		},
		"missing": func(t *testing.T, data string) {
			_, log := inData(data)
			require.NoError(t, os.RemoveAll(log))
		},
		"belongs to another store": func(t *testing.T, data string) {
			other, _ := killedStore(t)
			_, log := inData(data)
			_, from := inData(other)
			require.NoError(t, os.RemoveAll(log))
			require.NoError(t, os.CopyFS(log, os.DirFS(from)))
		},
	}
}

// A store whose log is lost does not open, and says what can be done; it can be
// given up on purpose, and only so.
func TestLostLog(t *testing.T) {
	killed, acknowledged := killedStore(t)
	for name, lose := range badLogs() {
		t.Run(name, func(t *testing.T) {
			data := cloned(t, killed)
			lose(t, data)
			file, log := inData(data)
			for _, args := range [][]string{
				{"serve", "--listen", "127.0.0.1:0"}, {"serve", "--listen", "127.0.0.1:0", "--no-commit-log"},
				{"store", "backup", filepath.Join(t.TempDir(), "b")}, {"store", "compact"},
			} {
				code, _, said := command(t, append(args, "--data", data)...)
				require.Equal(t, 1, code)
				require.Contains(t, said, name)
				require.Contains(t, said, "twinsrv store discard-log")
			}
			code, report, said := command(t, "store", "check", "--data", data)
			require.Equal(t, 1, code)
			require.Contains(t, report, "damaged: ")
			require.Contains(t, report, name)
			require.Contains(t, said, "lacks what was acknowledged last")
			require.Contains(t, said, "twinsrv store discard-log")
			to := "json:" + filepath.Join(t.TempDir(), "to")
			require.Contains(t, fails(t, "store", "copy", "bolt:"+data, to), name)
			code, _, said = command(t, "store", "copy", "--skip-unreadable", "bolt:"+data, to)
			require.Zero(t, code, said)
			require.Contains(t, said, "may be missing")
			code, _, said = command(t, "store", "discard-log", "--data", data)
			require.Equal(t, 2, code)
			require.Contains(t, said, "--yes")
			_, err := bolt.Open(file, bolt.Config{})
			require.ErrorIs(t, err, bolt.ErrLogged, "nothing was given up yet")

			said = succeeds(t, "store", "discard-log", "--data", data, "--yes")
			if name != "missing" {
				require.Contains(t, said, log+".discarded-1")
				require.DirExists(t, log+".discarded-1")
			}
			checked(t, "bolt:"+data)
			p := start(t, data)
			have := answers(p)
			require.NotEqual(t, acknowledged, have)
			require.Contains(t, have, strings.Repeat("x", 2000), "what was in the file is there")
			p.must(200, "PUT", entityOf(0), `{"n":5}`)
			have = answers(p)
			p.kill()
			p = start(t, data)
			require.Equal(t, have, answers(p))
			p.terminate()
		})
	}
	code, _, said := command(t, "store", "discard-log", "--store", "json:"+t.TempDir(), "--yes")
	require.Equal(t, 2, code)
	require.Contains(t, said, "no commit log")
}

// An older copy of the file beside a log that went on is not taken for the whole.
func TestOlderFileBesideItsLog(t *testing.T) {
	data := t.TempDir()
	p := start(t, data)
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
	p.terminate()
	file, _ := inData(data)
	older, err := os.ReadFile(file)
	require.NoError(t, err)
	p = start(t, data)
	p.must(201, "PUT", entityOf(0), `{"n":1}`)
	p.terminate()
	newer, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, older, 0o600))
	for _, args := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"store", "check"}, {"store", "compact"}} {
		code, out, said := command(t, append(args, "--data", data)...)
		require.Equal(t, 1, code)
		require.Contains(t, out+said, "the store is an older copy")
	}
	require.NoError(t, os.WriteFile(file, newer, 0o600))
	p = start(t, data)
	require.Equal(t, `{"n":1}`, p.must(200, "GET", entityOf(0), ""))
	p.terminate()
}

// Of a damaged file with a log in front, the log is read with it, and nothing is
// written to the one from the other.
func TestDamagedFileWithLog(t *testing.T) {
	killed, _ := killedStore(t)
	file, _ := inData(killed)
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	size, found := os.Getpagesize(), 0
	for page := 2; page < len(whole)/size && found < 3; page++ {
		data := cloned(t, killed)
		file, log := inData(data)
		spoiled := bytes.Clone(whole)
		copy(spoiled[page*size:], bytes.Repeat([]byte("noise"), size)[:size])
		require.NoError(t, os.WriteFile(file, spoiled, 0o600))
		var r checkReport
		code, out, said := command(t, "store", "check", "--data", data, "--json")
		if code == 0 || json.Unmarshal([]byte(out), &r) != nil || r.Damaged == "" || r.Position == 0 {
			continue // the page is not used, or has values alone, or nothing can be read without it
		}
		found++
		require.EqualValues(t, 62, r.Position, "what the log has is read: %s", said)
		require.Contains(t, said, "is damaged")
		broken, err := bolt.Open(file, bolt.Config{NoVerify: true, ReadOnly: true})
		require.NoError(t, err)
		mark, err := broken.Mark(t.Context())
		require.NoError(t, err)
		require.False(t, mark.Detached, "nothing is folded into a damaged file")
		require.NoError(t, broken.Close())
		require.NoError(t, os.RemoveAll(log))
		_, _, said = command(t, "store", "check", "--data", data)
		require.Contains(t, said, "the commit log cannot be read either")
	}
	require.Positive(t, found)
}

// Of a log only segments are made, and they are bounded.
func TestFilesOfTheLog(t *testing.T) {
	data := t.TempDir()
	p := start(t, data)
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
	w := write(p, 4)
	require.Eventually(t, func() bool { return w.count(200, 201) > 500 }, patience, tick)
	w.end()
	p.terminate()
	var names []string
	require.NoError(t, filepath.WalkDir(data, func(path string, e fs.DirEntry, err error) error {
		if !e.IsDir() {
			names = append(names, strings.TrimPrefix(path, data))
		}
		return err
	}))
	require.Subset(t, []string{"/twinsrv.db", "/commit-log/segment-1", "/commit-log/segment-2", "/commit-log/segment-3"}, names, fmt.Sprint(names))
}
