package server_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// damagedKinds are stores of every kind that writes backups, whose entity "bad
// one" cannot be read.
func damagedKinds(t *testing.T) map[string]string {
	data, _ := damagedStore(t)
	folder := filepath.Join(t.TempDir(), "twins")
	p := startWith(t, "--store", "json:"+folder)
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
	p.must(201, "PUT", "/v1/pods/docs/entities/bad%20one/state", `{"text":"`+marker+`"}`)
	p.must(201, "PUT", "/v1/pods/docs/entities/whole/state", `{"text":"fine"}`)
	p.terminate()
	file := filepath.Join(folder, "pods", "docs", "bad%20one.json")
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, bytes.ReplaceAll(good, []byte(marker), []byte("sust-eats-this")), 0o600))
	return map[string]string{"bolt": "bolt:" + data, "json": "json:" + folder}
}

// partly runs the program, which must do its work, list the damaged record, and
// end with 8.
func partly(t *testing.T, args ...string) (stdout string) {
	t.Helper()
	code, stdout, stderr := command(t, args...)
	require.Equal(t, 8, code, "%v: %s%s", args, stdout, stderr)
	require.Contains(t, stdout, "  unreadable record: docs/bad one: ")
	require.Regexp(t, `but of what it has 1 record(, \d+ \w+)* cannot be read`, stderr)
	return stdout
}

// Backups, restored stores and compacted ones of a store with a damaged record
// are made, and nobody takes them for whole.
func TestDamageIsToldOfWhatIsMade(t *testing.T) {
	for kind, at := range damagedKinds(t) {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "backup")
			require.Contains(t, partly(t, "store", "backup", file, "--store", at), file)
			restored := kind + ":" + filepath.Join(dir, "restored")
			require.Contains(t, partly(t, "store", "restore", file, "--store", restored), restored)
			partly(t, "store", "compact", "--store", restored)

			p := startWith(t, "--store", restored)
			p.must(200, "GET", "/v1/pods/docs/entities/whole", "")
			p.must(503, "GET", badOne, "")
			require.Contains(t, partly(t, "store", "backup", file, "--force", "--server", p.url), file)
			p.terminate()
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, entries, 2, "what was unpacked to be read is gone")
		})
	}
}
