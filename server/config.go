package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/twinsrv/twinsrv/entity"
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
	// ErrInUse says that another process serves the data folder.
	ErrInUse = errors.New("the data folder is in use")
)

// Config says what to serve, and where. The zero value works.
type Config struct {
	// Data is the folder that holds the store; it is made if it is missing.
	// Empty means DefaultData.
	Data string
	// Listen is the TCP address to serve on. Port 0 picks a free one. Empty
	// means DefaultListen.
	Listen string
	// Insecure allows addresses other than loopback, and any Host header.
	// There is no authentication: whoever reaches the address may do
	// everything.
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
	// Version stands in the OpenAPI document.
	Version string
}

func (c Config) withDefaults() Config {
	if c.Data == "" {
		c.Data = DefaultData
	}
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

// checkListen refuses what would let others in without Insecure.
func (c Config) checkListen() error {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("%w: %q is not host:port: %w", ErrListen, c.Listen, err)
	}
	if c.Insecure || host == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("%w: %s is not a loopback address, and there is no authentication: whoever reaches it may do everything; "+
		"listen on 127.0.0.1, or allow it with --insecure", ErrListen, c.Listen)
}

// hosts are what requests may name as their host beside loopback.
func (c Config) hosts() []string {
	if host, _, err := net.SplitHostPort(c.Listen); err == nil && host != "" {
		return []string{host}
	}
	return nil
}
