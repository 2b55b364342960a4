package server_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/server"
)

// Every command has help with examples of it, and a wrong use says where.
func TestHelp(t *testing.T) {
	commands := []string{
		"serve", "store migrate", "store check", "store copy", "store compact", "store backup", "store restore", "store discard-log",
		"quarantine list", "quarantine show", "quarantine retry", "quarantine remove",
	}
	top := succeeds(t, "--help")
	for _, c := range commands {
		require.Contains(t, top, "  "+c+" ")
		help := succeeds(t, append(strings.Fields(c), "--help")...)
		require.Contains(t, help, "Examples:\n")
		require.Contains(t, help, "twinsrv "+c)
		code, stdout, stderr := command(t, append(strings.Fields(c), "--bogus")...)
		require.Equal(t, 2, code)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "--bogus")
		if c != "serve" {
			require.Contains(t, stderr, "`twinsrv "+c+" --help`")
		}
	}
	require.NotEmpty(t, succeeds(t, "version"))
	for _, args := range []string{"store", "quarantine", "nonsense", "serve x", "--listen 10.0.0.1:0", "--listen nonsense"} {
		code, _, stderr := command(t, strings.Fields(args)...)
		require.Equal(t, 2, code, "%s: %s", args, stderr)
	}
}

// The bounds of the memory are the pods'.
func TestBoundsOfMemory(t *testing.T) {
	p := startWith(t, "--store", "memory:", "--max-active", "16", "--idle-after", "1h")
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
	for i := range 60 {
		p.must(201, "PUT", entityOf(i), `{}`)
	}
	active := func(want string) func() bool {
		return func() bool { return strings.Contains(p.must(200, "GET", "/healthz", ""), want) }
	}
	require.Eventually(t, func() bool {
		for _, n := range []string{"15", "16", "17"} {
			if active(`"active":` + n + ",")() {
				return true
			}
		}
		return false
	}, patience, tick)
	p.terminate()
	p = startWith(t, "--store", "memory:", "--idle-after", "20ms")
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
	p.must(201, "PUT", entityOf(0), `{}`)
	require.Eventually(t, active(`"active":0,`), patience, tick)
	p.must(200, "GET", entityOf(0), "")
	p.terminate()
}

// The bounds of the history are the committer's.
func TestBoundsOfHistory(t *testing.T) {
	for name, cfg := range map[string]server.Config{
		"count": {Store: "memory:", KeepChanges: 10}, "age": {Store: "memory:", KeepFor: 1},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Definitions = []entity.Definition{lamps()}
			s, err := server.Open(t.Context(), cfg)
			require.NoError(t, err)
			p, err := s.Pods().Pod("lamps")
			require.NoError(t, err)
			const changes = 4000
			for range changes {
				_, err := p.Ask(t.Context(), "hall", flip{})
				require.NoError(t, err)
			}
			store := s.Pods().Committer().Service()
			require.Eventually(t, func() bool {
				log, err := store.Log(t.Context(), 0, changes+10)
				require.NoError(t, err)
				return len(log) < changes*3/4
			}, patience, tick)
			require.NoError(t, s.Close(t.Context()))
		})
	}
}
