package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

// Server is an open store with its pods running. It listens nowhere by itself:
// Handler serves it. It is safe for concurrent use.
type Server struct {
	cfg   Config
	where target // of the store; zero when it is the caller's
	store persist.PersistenceService
	sys   *actor.System
	pods  *pod.Pods
	api   *httpapi.API

	checking atomic.Bool // the store's file is being checked, or was found damaged
	closing  sync.Once
	closed   error
}

// Open opens the store, starts the pods of cfg.Definitions and those that were
// declared, and prepares the HTTP API. Whoever opens it closes it. It fails with
// ErrInUse when another process has the store open, and with ErrStore when cfg
// names none.
func Open(ctx context.Context, cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	s := &Server{cfg: cfg, store: cfg.Service}
	var err error
	if s.where, err = cfg.target(); err != nil {
		return nil, err
	}
	if s.store == nil {
		if s.store, err = s.where.open(ctx, cfg.Logger, cfg.logUse()); err != nil {
			return nil, err
		}
	}
	s.sys = actor.NewSystem("twinsrv", actor.Config{Logger: cfg.Logger})
	if err := s.start(ctx); err != nil {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.Drain)
		defer cancel()
		return nil, errors.Join(err, s.Close(bounded))
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) error {
	err := unfinishedCopy(ctx, s.store)
	if err != nil {
		return err
	}
	if s.pods, err = pod.Open(s.sys, s.store, s.cfg.pods()); err != nil {
		return err
	}
	for _, d := range s.cfg.Definitions {
		if _, err := s.pods.Start(ctx, d); err != nil {
			return fmt.Errorf("start a typed pod: %w", err)
		}
	}
	var unknown []string
	for _, p := range s.pods.All() {
		if p.Spec() == nil {
			unknown = append(unknown, p.Name())
		}
	}
	if unknown != nil {
		s.cfg.Logger.Warn("pods are served read-only: this program does not have their types", "pods", unknown)
	}
	var tokens []httpapi.Token
	if s.cfg.TokenFile != "" {
		if tokens, err = readTokens(s.cfg.TokenFile); err != nil {
			return err
		}
	}
	s.api = httpapi.New(s.pods, httpapi.Config{
		Logger: s.cfg.Logger, Hosts: s.cfg.hosts(), AnyHost: s.cfg.Insecure || tokens != nil, Tokens: tokens, Ready: s.ready,
		Version: cmp.Or(s.cfg.Version, version()), Store: s.where.kind,
	})
	return nil
}

// ready says what is missing beside what the API knows of.
func (s *Server) ready() error {
	if s.checking.Load() {
		return errors.New("the store's file is still being checked for damage")
	}
	return nil
}

// Pods returns the registry of the pods.
func (s *Server) Pods() *pod.Pods { return s.pods }

// Store names the store, without its password; "" if it is the caller's own.
func (s *Server) Store() string {
	if s.where.kind == "" {
		return ""
	}
	return s.where.String()
}

// System returns the actor system that everything runs in.
func (s *Server) System() *actor.System { return s.sys }

// Handler returns the HTTP API.
func (s *Server) Handler() http.Handler { return s.api }

// Close finishes what the entities began, makes it durable and closes the
// store, within ctx. An error says what was not finished; what was
// acknowledged is durable all the same. Later calls return what the first did.
func (s *Server) Close(ctx context.Context) error {
	s.closing.Do(func() { s.closed = s.close(ctx) })
	return s.closed
}

func (s *Server) close(ctx context.Context) error {
	var errs []error
	if s.pods != nil {
		if err := s.pods.Close(ctx); err != nil {
			errs = append(errs, fmt.Errorf("close the pods: %w", err))
		}
	}
	if s.api != nil {
		s.api.Close()
	}
	// The system's jobs read the store, so it ends first.
	if err := s.sys.Stop(ctx); err != nil {
		errs = append(errs, fmt.Errorf("stop the actors: %w", err))
	}
	if err := s.closeStore(ctx); err != nil {
		errs = append(errs, fmt.Errorf("close the store: %w", err))
	}
	return errors.Join(errs...)
}

// closeStore waits for a store that hangs in a sync no longer than ctx. A store
// that is the caller's own stays open.
func (s *Server) closeStore(ctx context.Context) error {
	if s.cfg.Service != nil {
		return nil
	}
	done := make(chan error, 1)
	go func() { done <- s.store.Close() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	default:
		return fmt.Errorf("%s did not close in time: %w", s.where, ctx.Err())
	}
}
