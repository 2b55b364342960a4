package actortest

import (
	"context"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

type Seeded struct{}

var _ actor.Executor = (*Seeded)(nil)

func NewSeeded(seed uint64) *Seeded                                { panic("skeleton") }
func (s *Seeded) Run()                                             { panic("skeleton") }
func (s *Seeded) RunFor(d time.Duration)                           { panic("skeleton") }
func (s *Seeded) RunUntil(cond func() bool) bool                   { panic("skeleton") }
func (s *Seeded) Step() bool                                       { panic("skeleton") }
func (s *Seeded) Now() time.Time                                   { panic("skeleton") }
func (s *Seeded) Trace() []string                                  { panic("skeleton") }
func (s *Seeded) Hash() uint64                                     { panic("skeleton") }
func (s *Seeded) Close()                                           { panic("skeleton") }
func (s *Seeded) Schedule(t actor.Task)                            { panic("skeleton") }
func (s *Seeded) Go(f func())                                      { panic("skeleton") }
func (s *Seeded) After(d time.Duration, f func()) actor.Timer      { panic("skeleton") }
func (s *Seeded) Every(d time.Duration, f func()) actor.Timer      { panic("skeleton") }
func (s *Seeded) Uint64() uint64                                   { panic("skeleton") }
func (s *Seeded) NewParker() actor.Parker                          { panic("skeleton") }
func (s *Seeded) OnDone(ctx context.Context, f func()) func() bool { panic("skeleton") }
