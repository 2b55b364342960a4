package actor

import (
	"context"
	"log/slog"
	"time"
)

type Promise struct{ sys *System }

func (s *System) NewPromise() *Promise                      { panic("skeleton") }
func (s *System) OnReply(f func(v any, err error)) *Promise { panic("skeleton") }
func (p *Promise) Complete(v any) bool                      { panic("skeleton") }
func (p *Promise) Fail(err error) bool                      { panic("skeleton") }
func (p *Promise) Wait(ctx context.Context) (any, error)    { panic("skeleton") }
func (p *Promise) Done() bool                               { panic("skeleton") }

type Ref struct{ name string }

func (r *Ref) turn(w Worker) bool                            { panic("skeleton") }
func (r *Ref) Name() string                                  { panic("skeleton") }
func (r *Ref) Path() string                                  { panic("skeleton") }
func (r *Ref) Parent() *Ref                                  { panic("skeleton") }
func (r *Ref) System() *System                               { panic("skeleton") }
func (r *Ref) String() string                                { panic("skeleton") }
func (r *Ref) Tell(msg any) error                            { panic("skeleton") }
func (r *Ref) TellFrom(msg any, sender *Ref) error           { panic("skeleton") }
func (r *Ref) Post(m Message) error                          { panic("skeleton") }
func (r *Ref) TryPost(m Message) error                       { panic("skeleton") }
func (r *Ref) Ask(ctx context.Context, msg any) (any, error) { panic("skeleton") }
func (r *Ref) TellSystem(msg any)                            { panic("skeleton") }
func (r *Ref) Stop()                                         { panic("skeleton") }
func (r *Ref) Stopped() bool                                 { panic("skeleton") }
func (r *Ref) Child(name string) (*Ref, bool)                { panic("skeleton") }
func (r *Ref) Children() []*Ref                              { panic("skeleton") }
func (r *Ref) MailboxLen() int                               { panic("skeleton") }
func (r *Ref) Spawn(name string, p Props) (*Ref, error)      { panic("skeleton") }
func (r *Ref) EnsureChild(name string, props func() Props) (child *Ref, created bool, err error) {
	panic("skeleton")
}
func Ask[T any](ctx context.Context, t Target, msg any) (T, error) { panic("skeleton") }

type Directive int

const (
	Restart Directive = iota
	Resume
	Stop
	Escalate
)

type Strategy struct {
	AllForOne              bool
	Decide                 func(err error) Directive
	MaxRestarts            int
	Within                 time.Duration
	MinBackoff, MaxBackoff time.Duration
}

type Context struct{ r *Ref }

func (c *Context) Self() *Ref                                               { panic("skeleton") }
func (c *Context) Sender() *Ref                                             { panic("skeleton") }
func (c *Context) Parent() *Ref                                             { panic("skeleton") }
func (c *Context) System() *System                                          { panic("skeleton") }
func (c *Context) Message() Message                                         { panic("skeleton") }
func (c *Context) Logger() *slog.Logger                                     { panic("skeleton") }
func (c *Context) Now() time.Time                                           { panic("skeleton") }
func (c *Context) Context() context.Context                                 { panic("skeleton") }
func (c *Context) Tell(to *Ref, msg any) error                              { panic("skeleton") }
func (c *Context) Respond(v any)                                            { panic("skeleton") }
func (c *Context) Fail(err error)                                           { panic("skeleton") }
func (c *Context) Forward(to Target) error                                  { panic("skeleton") }
func (c *Context) Defer() *Promise                                          { panic("skeleton") }
func (c *Context) PipeTo(to *Ref, f func(ctx context.Context) (any, error)) {}
func (c *Context) Spawn(name string, p Props) (*Ref, error)                 { panic("skeleton") }
func (c *Context) Stop(child *Ref)                                          { panic("skeleton") }
func (c *Context) Watch(r *Ref)                                             { panic("skeleton") }
func (c *Context) Unwatch(r *Ref)                                           { panic("skeleton") }
func (c *Context) Become(f ActorFunc)                                       { panic("skeleton") }
func (c *Context) BecomeStacked(f ActorFunc)                                { panic("skeleton") }
func (c *Context) Unbecome()                                                { panic("skeleton") }
func (c *Context) Stash() error                                             { panic("skeleton") }
func (c *Context) UnstashAll()                                              { panic("skeleton") }
func (c *Context) ScheduleOnce(d time.Duration, to *Ref, msg any) Timer     { panic("skeleton") }
func (c *Context) ScheduleEvery(d time.Duration, to *Ref, msg any) Timer    { panic("skeleton") }
func (c *Context) Hold()                                                    { panic("skeleton") }
func (c *Context) Resume()                                                  { panic("skeleton") }
func (c *Context) Retire() bool                                             { panic("skeleton") }
func (c *Context) StopSelf()                                                { panic("skeleton") }
func (c *Context) Stopping() bool                                           { panic("skeleton") }
func (c *Context) IsException() error                                       { panic("skeleton") }

type Config struct {
	Workers    int
	Throughput int
	AskTimeout time.Duration
	Logger     *slog.Logger
	Executor   Executor
}
type System struct{ name string }

func NewSystem(name string, cfg Config) *System            { panic("skeleton") }
func (s *System) Name() string                             { panic("skeleton") }
func (s *System) Logger() *slog.Logger                     { panic("skeleton") }
func (s *System) Spawn(name string, p Props) (*Ref, error) { panic("skeleton") }
func (s *System) User() *Ref                               { panic("skeleton") }
func (s *System) Root() *Ref                               { panic("skeleton") }
func (s *System) Lookup(path string) (*Ref, error)         { panic("skeleton") }
func (s *System) Send(path string, m Message) error        { panic("skeleton") }
func (s *System) Now() time.Time                           { panic("skeleton") }
func (s *System) Uint64() uint64                           { panic("skeleton") }
func (s *System) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	panic("skeleton")
}
func (s *System) After(d time.Duration, f func()) Timer            { panic("skeleton") }
func (s *System) Go(f func())                                      { panic("skeleton") }
func (s *System) Sleep(ctx context.Context, d time.Duration) error { panic("skeleton") }

type Waiter struct{ p Parker }

func (s *System) NewWaiter() *Waiter             { panic("skeleton") }
func (w *Waiter) Wake()                          { panic("skeleton") }
func (w *Waiter) Wait(ctx context.Context) error { panic("skeleton") }

type DeadLetters struct{}

func (s *System) DeadLetters() *DeadLetters                        { panic("skeleton") }
func (d *DeadLetters) Subscribe(f func(ZombieMsg)) (cancel func()) { panic("skeleton") }
func (d *DeadLetters) Count() uint64                               { panic("skeleton") }
func (d *DeadLetters) Publish(z ZombieMsg)                         { panic("skeleton") }

type ZombieMsg struct {
	To      string
	Message Message
	Reason  error
	At      time.Time
}

func (s *System) AwaitStop(ctx context.Context, r *Ref) error { panic("skeleton") }
func (s *System) Stop(ctx context.Context) error              { panic("skeleton") }
