package persist

import (
	"errors"
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/snapshot"
)

// PersistentActor is an actor with a snapshot of its own. It is run by the
// Props that Persistent makes: first its snapshot is read, with the mailbox
// held; then Recover is called, PostRecovery and PreStart if it has them, and
// only then do its messages come. A restart begins with the recovery again.
//
// While the store is unavailable the recovery waits for it. A recovery that
// fails otherwise ends in quarantine: see ErrQuarantined.
//
// The other optional methods of actors (PostStop, PreRestart, Resumed) work as
// they do there, for an actor that had recovered. PreStart and PostStop may take
// a *Context of this package instead of actor's: see PreStarter and PostStopper.
type PersistentActor interface {
	// PersistenceID is the key under which the snapshot is kept. It must not
	// change while the actor runs.
	PersistenceID() Key
	// Recover takes the last snapshot, or one whose Found is false.
	Recover(ctx *Context, s Snapshot) error
	// Receive handles one message.
	Receive(ctx *Context, msg any) error
}

// PostRecoverer is implemented by persistent actors that want to act once they
// are recovered, before PreStart and before their first message.
type PostRecoverer interface {
	PostRecovery(ctx *Context) error
}

// PreStarter is actor.PreStarter with this package's Context.
type PreStarter interface {
	PreStart(ctx *Context) error
}

// PostStopper is actor.PostStopper with this package's Context. What PostStop
// saves or deletes is done, if the committer is closed after the actor, but
// there is nobody left to be told of it.
type PostStopper interface {
	PostStop(ctx *Context)
}

// ServiceOwner is implemented by persistent actors whose snapshots are kept by
// a service of their own, not by the one of their Props.
type ServiceOwner interface {
	// Committer is asked once for each instance, before the recovery. Nil
	// stands for the service of the Props.
	Committer() *Committer
}

// Snapshot is what a PersistentActor recovers from.
type Snapshot struct {
	Found    bool
	Revision uint64 // counts the snapshots since the first, or the last deletion
	Saved    time.Time
	// Schema is the version that the snapshot was saved with. Its state has been
	// upgraded to the one of the Props since.
	Schema uint32
	codec  snapshot.Codec
	state  []byte
}

// Decode decodes the snapshot into a pointer; without a snapshot it does
// nothing.
func (s Snapshot) Decode(into any) error {
	if !s.Found {
		return nil
	}
	return s.codec.Decode(s.state, into)
}

// The answers to SaveSnapshot and DeleteSnapshot, which come as messages.
type (
	// SnapshotSaved says that a snapshot is durable.
	SnapshotSaved struct{ Revision uint64 }
	// SnapshotFailed says that a snapshot was not saved or, if the error wraps
	// ErrUnknown, that it is not known whether it was.
	SnapshotFailed struct {
		Revision uint64
		Err      error
	}
	// SnapshotDeleted says that there is no snapshot any more.
	SnapshotDeleted struct{}
	// SnapshotDeleteFailed says that a snapshot was not deleted, as above.
	SnapshotDeleteFailed struct{ Err error }
)

// PersistentConfig says how persistent actors are run. The zero value works on
// a system that has a default service (Committer.MakeDefault).
type PersistentConfig struct {
	// Committer is the way to the service that keeps the snapshots. Nil means
	// the system's default.
	Committer *Committer
	// Codec encodes the snapshots; nil means msgpack. Snapshots that were saved
	// with another one of this program's are read all the same, and are saved
	// with this one from then on.
	Codec snapshot.Codec
	// Schema is the version of the state's type, which snapshots are saved
	// with. A snapshot of a newer version is refused: the actor is quarantined.
	Schema uint32
	// Upgrades carry snapshots of earlier versions forward, before Recover. Each
	// stands under the version that it starts from; one that would never run,
	// since that is Schema or later, ends the actor at its start.
	Upgrades snapshot.Upgrades
}

// Persistent returns Props that run persistent actors on a committer, with
// their snapshots in a codec. PersistentConfig has more to set.
func Persistent(c *Committer, codec snapshot.Codec, factory func() PersistentActor) actor.Props {
	return PersistentConfig{Committer: c, Codec: codec}.Props(factory)
}

// Props returns Props that run the persistent actors that factory makes. The
// other fields of the Props are the caller's to set; a mailbox with a bound
// loses the answers to SaveSnapshot and DeleteSnapshot that come when it is full.
func (c PersistentConfig) Props(factory func() PersistentActor) actor.Props {
	if c.Codec == nil {
		c.Codec = snapshot.Msgpack()
	}
	return actor.Props{New: func() actor.Actor {
		return &persistentHost{cfg: c, factory: factory, user: factory()}
	}}
}

// defaultService is where a system's default service is kept.
const defaultService = actor.Key[*Committer]("persist.committer")

// MakeDefault makes c what persistent actors of its system use that name no
// service of their own.
func (c *Committer) MakeDefault() { defaultService.Set(c.sys.Global(), c) }

var errNoService = errors.New("it has no service: set PersistentConfig.Committer, or give the system a default with Committer.MakeDefault")

// check says what is wrong with what the user has set.
func (c PersistentConfig) check() error {
	if err := c.Upgrades.Check(c.Schema); err != nil {
		return fmt.Errorf("its Upgrades: %w", err)
	}
	return nil
}

// serviceOf finds the committer of an actor.
func (c PersistentConfig) serviceOf(sys *actor.System, user PersistentActor) (*Committer, error) {
	if o, ok := user.(ServiceOwner); ok {
		if own := o.Committer(); own != nil {
			return own, nil
		}
	}
	if c.Committer != nil {
		return c.Committer, nil
	}
	if d, ok := defaultService.Get(sys.Global()); ok && d != nil {
		return d, nil
	}
	return nil, errNoService
}
