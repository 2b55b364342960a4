package cli

import (
	"cmp"
	"context"
	"iter"
	"net/url"
	"os"
	"time"
	"unicode/utf8"

	"github.com/twinsrv/twinsrv/client"
)

// ServerFlags say which server a command talks to.
type ServerFlags struct {
	Server    string        `default:"${server}" env:"TWINSRV_SERVER" placeholder:"URL" help:"The running server (${default})."`
	TokenFile string        `env:"TWINSRV_TOKEN_FILE" placeholder:"FILE" complete:"files" help:"A file with the token that the server wants; TWINSRV_TOKEN may hold it in place of that."`
	Timeout   time.Duration `default:"30s" placeholder:"DURATION" help:"How long to wait for an answer (${default}); 0 is for ever."`
}

// maxAsk is the longest time that a server gives an entity.
const maxAsk = time.Minute

// repeats is how often a request is sent again: about two seconds long.
const repeats = 4

// Session is a command's connection to a server.
type Session struct {
	*client.Client
	shown   string // the server's URL without a password
	timeout time.Duration
}

// Connect returns a connection to the server; nothing is sent yet. It fails with
// a UsageError.
func (f *ServerFlags) Connect() (*Session, error) { return f.connect(client.Config{Repeats: repeats}) }

func (f *ServerFlags) connect(cfg client.Config) (*Session, error) {
	for _, arg := range os.Args[1:] {
		if !utf8.ValidString(arg) { // JSON would have another text in its place
			return nil, Usagef("%q is not valid UTF-8", arg)
		}
	}
	if f.Server == "" { // as an empty variable has it
		f.Server = exampleServer
	}
	u, err := url.Parse(f.Server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, Usagef("--server, or TWINSRV_SERVER, wants the URL of a server, such as %s", exampleServer)
	}
	if f.Timeout < 0 {
		return nil, Usagef("--timeout must not be negative; 0 is for ever")
	}
	if cfg.Token, err = f.token(); err != nil {
		return nil, err
	}
	cfg.UserAgent = "twinsrv"
	c, err := client.New(f.Server, cfg)
	if err != nil {
		return nil, UsageError{err}
	}
	return &Session{Client: c, shown: u.Redacted(), timeout: f.Timeout}, nil
}

// exampleServer stands in what is told to people.
const exampleServer = "http://127.0.0.1:8080"

// Shown returns the server's URL without a password.
func (s *Session) Shown() string { return s.shown }

// do connects, does something in the time that is given, and words its failure.
func (f *ServerFlags) do(ctx context.Context, what func(ctx context.Context, s *Session) error) error {
	return f.stream(ctx, func(ctx context.Context, s *Session) error {
		if s.timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, s.timeout+time.Second) // the server's own word comes first
			defer cancel()
		}
		return what(ctx, s)
	})
}

// stream is do for what takes as long as there is something to take.
func (f *ServerFlags) stream(ctx context.Context, what func(ctx context.Context, s *Session) error) error {
	s, err := f.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Explain(ctx, what(ctx, s))
}

// entity is the address of an entity, with the time that it has for an answer.
func (s *Session) entity(pod, name string) client.Entity {
	return s.Entity(pod, name).Timeout(min(cmp.Or(s.timeout, maxAsk), maxAsk))
}

// patient goes through a sequence, and gives up when the next thing does not
// come in the time that is given. The time that is spent with what came does not
// count.
func patient[T any](ctx context.Context, s *Session, seq func(context.Context) iter.Seq2[T, error]) iter.Seq2[T, error] {
	if s.timeout == 0 {
		return seq(ctx)
	}
	return func(yield func(T, error) bool) {
		inner, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		alarm := time.AfterFunc(s.timeout, func() { cancel(context.DeadlineExceeded) })
		defer alarm.Stop()
		for v, err := range seq(inner) {
			alarm.Stop()
			if err != nil && ctx.Err() == nil && inner.Err() != nil {
				err = context.Cause(inner)
			}
			if !yield(v, err) {
				return
			}
			alarm.Reset(s.timeout)
		}
	}
}

// token returns the bearer token: that of a file on the command line, of the
// environment, or of a file that the environment names. Empty is none.
func (f *ServerFlags) token() (string, error) {
	token, named := os.Getenv("TWINSRV_TOKEN"), os.Getenv("TWINSRV_TOKEN_FILE")
	if f.TokenFile == "" || token != "" && f.TokenFile == named {
		return token, checkToken(token, "TWINSRV_TOKEN")
	}
	return readToken(f.TokenFile)
}
