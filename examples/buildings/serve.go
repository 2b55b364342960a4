package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/twinsrv/twinsrv/server"
)

// serve opens the data folder and serves it. Meanwhile it does the work, and
// after that it serves on until ctx ends, unless o says to end. Everything is
// closed when it returns.
func serve(ctx context.Context, o options, log *slog.Logger, out io.Writer, work func(context.Context, pods) error) (err error) {
	if err := loopback(o.Listen); err != nil {
		return err
	}
	s, err := server.Open(ctx, server.Config{Data: o.Data, Listen: o.Listen, Definitions: definitions, Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, within(server.DefaultDrain, s.Close)) }()
	h, err := findPods(s.Pods())
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", o.Listen, err)
	}
	web := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	defer func() { err = errors.Join(err, within(server.DefaultDrain/2, web.Shutdown)) }()
	_, _ = fmt.Fprintf(out, "serving %s on http://%s\n", o.Data, listener.Addr())
	if err := work(ctx, h); err != nil || o.Exit {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	}
}

// loopback refuses an address that others reach: there is no authentication.
func loopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not host:port: %w", address, err)
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("%s is not a loopback address, and whoever reaches it may do everything; listen on 127.0.0.1", address)
}

// within calls f with a context that ends after d.
func within(d time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return f(ctx)
}
