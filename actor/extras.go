package actor

// extras is what an actor needs only once it uses it. Owned by the turn.
type extras struct {
	later []signal // messages of TellSystem and escalations that wait for an instance

	behaviours []ActorFunc
	stash      []Message
	timers     []*timer
	watching   map[*Ref]struct{}
	scope      *clockCtx // Context.Context

	delegation *delegation
	dying      Timer // Context.DieIn
	store      *Store

	restarts  tracker // of the last Strategy.Within
	restarted bool    // the instance to come is not the first
	backoff   *backoff
	started   bool // the failed instance had started
	failure   error
	failedOn  any
	escalated []*Ref // children that wait for what is decided about this actor

	reason       error // why it stops, when a failure is behind it
	parentReason error
	inPostStop   bool
}

// rare is what senders and others share with an actor once somebody needs it.
// Guarded by Ref.mu.
type rare struct {
	signals  []signal // the system mailbox, behind Ref.plain
	watchers []*Ref   // in the order in which they came
	awaiting []Parker // callers of System.AwaitStop
	reason   error    // the failure that ended the actor
	lane     *lane    // the user mailbox, unless it is the two slices
	full     *FullError
}

// rarely returns r.rare, made if need be. mu is held.
func (r *Ref) rarely() *rare {
	if r.rare == nil {
		r.rare = &rare{}
	}
	return r.rare
}

func (r *Ref) extras() *extras {
	if r.extra == nil {
		r.extra = &extras{}
	}
	return r.extra
}
