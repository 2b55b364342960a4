package entity

import (
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// Directory finds entities by their keys. Package pod implements it.
type Directory interface {
	// Wrap binds a Go value to a message of a pod, as Spec.Wrap does.
	Wrap(pod string, v any) (*Message, error)
	// Encode makes a Go value for a pod's entity into bytes, as Spec.Encode does,
	// and Decode makes them a message again.
	Encode(pod string, v any) (what string, body []byte, err error)
	Decode(pod, what string, body []byte) (*Message, error)
	// Post puts a message into the mailbox of an entity, which is made active
	// when it is not. The payload is a *Message, or a Go value that Wrap takes.
	Post(key persist.Key, m actor.Message) error
	// System returns the actor system the entities live in.
	System() *actor.System
}

// Host is the place in which an entity is active: a slot of its pod. The
// activation calls it on its own turns.
type Host interface {
	Directory
	Key() persist.Key
	Spec() *Spec
	Committer() *persist.Committer
	// Succeeds reports whether an earlier activation of the name may still have
	// units at the committer. Then its successor waits for their outcomes
	// before it reads the store.
	Succeeds() bool
	// MaxState is the most bytes that an encoded state may have.
	MaxState() int
	// SetView publishes the acknowledged state; a record of revision 0 says
	// that the entity is absent, nil that its state must be read from the
	// store. Whoever gets a record must not change it.
	SetView(*snapshot.Record)
	// SetRemoving says that a deletion is under way, which the store may show
	// before it is acknowledged, or no longer.
	SetRemoving(bool)
	// Quarantine lists the entity as unreadable; nil takes it off the list.
	Quarantine(reason error)
	// Published announces a change that is acknowledged.
	Published(persist.Change)
	// Created announces that a life has begun.
	Created(life uint64)
	// Used notes that the entity handled a message.
	Used()
	// Stays reports whether the entity is to stay in memory though it is idle.
	Stays() bool
	// SetStays pauses the passivation of the entity, or resumes it.
	SetStays(bool)
	// Closing reports whether the pods are being closed: entities leave memory
	// though they have messages to deliver.
	Closing() bool
	// Owes says that the activation ended with messages of SendOnce to deliver,
	// or with reminders that the host does not know of, or may have: the entity
	// must be woken soon.
	Owes()
	// Remind says, durably, when a reminder of the entity is to be handled; with
	// the zero time, that there is none of this name.
	Remind(name string, at time.Time)
	// Gone says that the activation has ended and takes no more messages, and
	// whether units of it may still be at the committer.
	Gone(unsettled bool)
}

// Ref is an entity's address. It stays good whether the entity exists or not,
// is active or not. The zero value is not usable; it is safe for concurrent
// use.
type Ref struct {
	dir Directory
	key persist.Key
}

// NewRef returns the address of a key in a directory.
func NewRef(d Directory, key persist.Key) Ref { return Ref{dir: d, key: key} }

// Key returns the entity's pod and name.
func (r Ref) Key() persist.Key { return r.key }

// String returns the entity's key.
func (r Ref) String() string { return r.key.String() }

// Post puts a message into the entity's mailbox.
func (r Ref) Post(m actor.Message) error { return r.dir.Post(r.key, m) }

// System returns the actor system the entity lives in.
func (r Ref) System() *actor.System { return r.dir.System() }

var _ actor.Target = Ref{}
