package pod

import (
	"strings"
	"sync"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/internal/mutant"
)

// claim takes a message to a name that has no live actor into the name's slot.
// It runs in the sender's call, so that a sender's messages keep their order;
// each of them is then judged in its turn. It leaves to the dead letters what
// the pod cannot take.
func (p *Pod) claim(name string, m actor.Message) bool {
	if _, ok := m.Payload.(actor.PoisonPill); ok {
		return false // nothing is there to be passivated
	}
	if msg, ok := m.Payload.(*entity.Message); ok && msg.IsPassivate() {
		return false
	}
	return !mutant.On(mutant.ClaimRefused) && p.post(name, m) == nil
}

// PodDeadLetterActor watches the dead letters of entities and counts them by
// pod: messages that were refused while nobody waited for an answer, and those
// that could not be delivered.
type PodDeadLetterActor struct {
	pods   *Pods
	cancel func()

	mu     sync.Mutex
	counts map[string]uint64
}

func newPodDeadLetterActor(p *Pods) *PodDeadLetterActor {
	return &PodDeadLetterActor{pods: p, counts: make(map[string]uint64)}
}

// subscribe begins to listen to the system's dead letters for the actor, before
// anything can be sent to a pod.
func (d *PodDeadLetterActor) subscribe(self *actor.Ref) {
	d.cancel = d.pods.sys.DeadLetters().Subscribe(func(z actor.ZombieMsg) {
		if pod := d.podOf(z.To); pod != "" && !self.Stopped() {
			_ = self.Tell(letter{pod: pod, zombie: z}) // its mailbox has no bound
		}
	})
}

// PostStop ends the subscription.
func (d *PodDeadLetterActor) PostStop(*actor.Context) { d.cancel() }

type letter struct {
	pod    string
	zombie actor.ZombieMsg
}

// Receive counts one dead letter.
func (d *PodDeadLetterActor) Receive(ctx *actor.Context, msg any) error {
	l, ok := msg.(letter)
	if !ok {
		return nil
	}
	d.mu.Lock()
	d.counts[l.pod]++
	d.mu.Unlock()
	ctx.Logger().Debug("dead letter of an entity", "to", l.zombie.To, "reason", l.zombie.Reason)
	return nil
}

// podOf returns the pod that a dead letter was for: of an actor's path below
// the pods' root, or of an entity's key.
func (d *PodDeadLetterActor) podOf(to string) string {
	to = strings.TrimPrefix(to, d.pods.root.Path()+"/")
	pod, _, ok := strings.Cut(to, "/")
	if !ok {
		return ""
	}
	if _, err := d.pods.Pod(pod); err != nil {
		return ""
	}
	return pod
}

// DeadLetters returns how many messages to a pod's entities became dead letters
// since the pods were opened.
func (p *Pods) DeadLetters(pod string) uint64 {
	p.letters.mu.Lock()
	defer p.letters.mu.Unlock()
	return p.letters.counts[pod]
}

func (p *Pods) undeliverable(to string, m actor.Message, reason error) {
	p.sys.DeadLetters().Publish(actor.ZombieMsg{To: to, Message: m, Reason: reason, At: p.sys.Now()})
}
