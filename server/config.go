package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

// Defaults of Config.
const (
	DefaultData   = "./twinsrv-data"
	DefaultListen = "127.0.0.1:8080"
	DefaultDrain  = 10 * time.Second
)

var (
	// ErrListen refuses an address to listen on.
	ErrListen = errors.New("address refused")
	// ErrInUse says that another process has the store open.
	ErrInUse = errors.New("the store is in use")
)

// Config says what to serve, and where. The zero value works.
type Config struct {
	// Store names the store, which is made if it is missing: bolt:DIR, json:DIR,
	// postgres://USER:PASSWORD@HOST/DATABASE, or memory: for one that ends with
	// the server. Empty means bolt:Data.
	Store string
	// Data is the folder of the store bolt:Data. Empty means DefaultData. It
	// must be empty when Store is set.
	Data string
	// Service, if set, is an open store that is used in place of Store and Data,
	// which must be empty then. It stays the caller's to close, after the
	// server.
	Service persist.PersistenceService
	// NoCommitLog serves a store in bolt without a commit log in front of it. If
	// one stands there, it is folded into the store's file first. Other stores
	// have none.
	NoCommitLog bool
	// IgnoreMissing serves a store in JSON files with the files of entities that
	// are there, where it would be refused because some went or came while it was
	// closed. Other stores do not heed it.
	IgnoreMissing bool
	// KeepChanges is how many changes the history keeps; older ones are dropped
	// in the background. 0 means 1,000,000.
	KeepChanges uint64
	// KeepFor is how long changes stay in the history. 0 means that age drops
	// none.
	KeepFor time.Duration
	// IdleAfter is how long an entity stays in memory without a message. 0 means
	// 10 minutes, negative for ever.
	IdleAfter time.Duration
	// MaxActive is how many entities may be in memory. 0 means 100,000, negative
	// sets no bound.
	MaxActive int
	// Listen is the TCP address to serve on. Port 0 picks a free one. Empty
	// means DefaultListen.
	Listen string
	// TokenFile names a file of tokens, of which requests must bring one: lines
	// of "read" or "write" and the token. Others than its owner and group must
	// have no access to it. Addresses other than loopback are allowed with it,
	// and any Host header.
	TokenFile string
	// Insecure allows addresses other than loopback, and any Host header, without
	// tokens: whoever reaches the address may do everything.
	Insecure bool
	// Definitions are the typed pods to serve beside those of the store.
	Definitions []entity.Definition
	// Logger gets what happens; nil discards.
	Logger *slog.Logger
	// Ready, if set, is called once with the address that is served.
	Ready func(addr net.Addr)
	// Work, if set, is called once when everything is served, with a context that
	// ends when the server is to end. An error of it ends the server with that
	// error; nil lets it serve on.
	Work func(ctx context.Context, s *Server) error
	// Drain bounds the end of Run: requests and entities that are not finished
	// by then are given up. 0 means DefaultDrain.
	Drain time.Duration
	// Version stands in the OpenAPI document and the health report. Empty means that
	// of the program.
	Version string
}

func (c Config) withDefaults() Config {
	if c.Listen == "" {
		c.Listen = DefaultListen
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Drain <= 0 {
		c.Drain = DefaultDrain
	}
	return c
}

// target says where the store is; it is the zero target when Service is.
func (c Config) target() (target, error) {
	switch {
	case c.Service != nil && (c.Store != "" || c.Data != ""):
		return target{}, fmt.Errorf("%w: an open store is given, and %q besides: want one of them", ErrStore, cmp.Or(c.Data, "another store"))
	case c.Service != nil:
		return target{}, nil
	case c.Store != "" && c.Data != "":
		return target{}, fmt.Errorf("%w: a store is given, and the data folder %s besides: want one of them", ErrStore, c.Data)
	case c.Store != "":
		t, err := parseTarget(c.Store)
		t.asFound = c.IgnoreMissing
		return t, err
	}
	return target{kind: kindBolt, at: cmp.Or(c.Data, DefaultData)}, nil
}

// logUse says whether a store in bolt is served with a commit log.
func (c Config) logUse() logUse {
	if c.NoCommitLog {
		return withoutLog
	}
	return withLog
}

// pods is the part of the configuration that is theirs.
func (c Config) pods() pod.Config {
	return pod.Config{
		IdleAfter: c.IdleAfter, MaxActive: c.MaxActive,
		Committer: persist.CommitterConfig{KeepChanges: c.KeepChanges, KeepFor: c.KeepFor},
	}
}

// checkListen refuses what would let others in without Insecure.
func (c Config) checkListen() error {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("%w: %q is not host:port: %w", ErrListen, c.Listen, err)
	}
	if c.Insecure || c.TokenFile != "" || host == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("%w: %s is not a loopback address, and without tokens whoever reaches it may do everything; "+
		"listen on 127.0.0.1, give tokens with --token-file, or allow it with --insecure", ErrListen, c.Listen)
}

// hosts are what requests may name as their host beside loopback.
func (c Config) hosts() []string {
	if host, _, err := net.SplitHostPort(c.Listen); err == nil && host != "" {
		return []string{host}
	}
	return nil
}
