package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/persist/bolt"
	"github.com/twinsrv/twinsrv/persist/commitlog"
)

// Run opens the store and serves it until ctx ends; then it lets requests
// and entities finish within cfg.Drain and closes everything. It returns nil
// after a clean end.
func Run(ctx context.Context, cfg Config) error {
	cfg = cfg.withDefaults()
	if err := cfg.checkListen(); err != nil {
		return err
	}
	if cfg.TokenFile != "" { // before anything is made or opened, as well
		if _, err := readTokens(cfg.TokenFile); err != nil {
			return err
		}
	}
	// A taken address is found before anything is made or opened.
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listen on %s: %w: another program has this address: stop that one, or give this one another address with --listen", cfg.Listen, err)
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", cfg.Listen, err)
	}
	s, err := Open(ctx, cfg)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return s.serve(ctx, listener)
}

// serve serves until ctx or the listener ends, and closes everything.
func (s *Server) serve(ctx context.Context, l net.Listener) error {
	web := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		WriteTimeout:      2 * time.Minute, // more than the longest timeout of a request
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelDebug),
	}
	web.RegisterOnShutdown(s.api.EndStreams)
	defer s.reloadOnHangup(ctx)()
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(httpapi.Listener(l)) }()
	s.cfg.Logger.Info("serving", "address", l.Addr().String(), "store", s.Store(), "pods", len(s.pods.All()))
	if s.cfg.Ready != nil {
		s.cfg.Ready(l.Addr())
	}
	worked, stopWork := s.work(ctx)
	failed := wait(ctx, s.cfg, ended, worked, s.damaged(ctx))
	stopWork()
	if err := s.end(web); err != nil {
		return errors.Join(failed, err)
	}
	if failed == nil {
		s.cfg.Logger.Info("stopped")
	}
	return failed
}

// damaged gives the damage when the store's file, which is checked while it is
// served, is found damaged. The goroutine ends with ctx or the store.
func (s *Server) damaged(ctx context.Context) <-chan error {
	found := make(chan error, 1)
	store := s.store
	if l, ok := store.(*commitlog.Store); ok {
		store = l.Behind()
	}
	if v, ok := store.(interface {
		Verified(ctx context.Context) error
	}); ok {
		s.checking.Store(true)
		go func() {
			err := v.Verified(ctx)
			if errors.Is(err, bolt.ErrDamaged) {
				found <- fmt.Errorf("the store is out of service: %w", err)
				return
			}
			s.checking.Store(false)
		}()
	}
	return found
}

// wait returns when ctx ends, or with what ended the serving or the work, or with
// the damage of the store.
func wait(ctx context.Context, cfg Config, ended, worked, damaged <-chan error) error {
	for {
		select {
		case <-ctx.Done():
			cfg.Logger.Info("stopping", "within", cfg.Drain)
			return nil
		case err := <-ended:
			return fmt.Errorf("serve: %w", err)
		case err := <-damaged:
			return err
		case err := <-worked:
			if err != nil {
				return err
			}
			worked = nil
		}
	}
}

// work starts cfg.Work. stop ends it and waits for it, no longer than a drain.
func (s *Server) work(ctx context.Context) (worked chan error, stop func()) {
	worked = make(chan error, 1)
	if s.cfg.Work == nil {
		return worked, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		worked <- s.cfg.Work(ctx, s)
	}()
	return worked, func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(s.cfg.Drain):
			s.cfg.Logger.Warn("the work did not end in time and is left behind")
		}
	}
}

// end lets requests finish in the first half of the time there is, and the
// entities in what is left.
func (s *Server) end(web *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Drain)
	defer cancel()
	if web != nil {
		half, cancel := context.WithTimeout(ctx, s.cfg.Drain/2)
		if err := web.Shutdown(half); err != nil {
			s.cfg.Logger.Warn("requests were still running and are cut off", "error", err)
			_ = web.Close()
		}
		cancel()
	}
	if err := s.Close(ctx); err != nil {
		return fmt.Errorf("stopped, but not cleanly: %w", err)
	}
	return nil
}
