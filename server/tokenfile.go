package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/internal/cli"
)

// ErrTokens refuses a file of tokens.
var ErrTokens = errors.New("the file of tokens cannot be used")

// readTokens reads a file of tokens: lines of "read" or "write" and a token.
// Empty lines and those that begin with # say nothing. Errors do not repeat
// tokens.
func readTokens(path string) ([]httpapi.Token, error) {
	data, err := cli.ReadSecret(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTokens, err)
	}
	tokens, err := parseTokens(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrTokens, path, err)
	}
	return tokens, nil
}

func parseTokens(r io.Reader) ([]httpapi.Token, error) {
	var tokens []httpapi.Token
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		scope, value, _ := strings.Cut(line, " ")
		value = strings.TrimSpace(value)
		switch {
		case scope != "read" && scope != "write":
			return nil, fmt.Errorf("line %d begins neither with read nor with write", n)
		case value == "" || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }):
			return nil, fmt.Errorf("line %d has no token of visible ASCII characters behind %s", n, scope)
		}
		tokens = append(tokens, httpapi.Token{Value: value, Write: scope == "write"})
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if tokens == nil {
		return nil, errors.New("it has no token: write lines such as: read TOKEN")
	}
	return tokens, nil
}

// ReloadTokens reads Config.TokenFile again, for all requests that come from now
// on. If that fails the tokens stay what they were.
func (s *Server) ReloadTokens() error {
	if s.cfg.TokenFile == "" {
		return nil
	}
	tokens, err := readTokens(s.cfg.TokenFile)
	if err != nil {
		return err
	}
	s.api.SetTokens(tokens)
	return nil
}

// reloadOnHangup reloads the tokens at each SIGHUP until ctx ends.
func (s *Server) reloadOnHangup(ctx context.Context) (stop func()) {
	if s.cfg.TokenFile == "" {
		return func() {}
	}
	hangup, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangup, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(ended)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangup:
			}
			if err := s.ReloadTokens(); err != nil {
				s.cfg.Logger.Error("the tokens stay what they were", "error", err)
			} else {
				s.cfg.Logger.Info("the tokens are read again", "file", s.cfg.TokenFile)
			}
		}
	}()
	return func() {
		signal.Stop(hangup)
		cancel()
		<-ended
	}
}
