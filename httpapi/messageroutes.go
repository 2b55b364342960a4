package httpapi

import (
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/pod"
)

// letter is a message on its way to an entity.
type letter struct {
	pod     *pod.Pod
	message *entity.Message
	timeout time.Duration
}

// postMessage gives an entity a message and answers with the entity's answer, or
// with a future of it. A message that creates the entity is answered with 200
// like any other: the answer is the handler's, and says what it wants to say.
func postMessage(c *call) error {
	l, err := c.letter()
	if err != nil {
		return err
	}
	p, err := c.preferences()
	if err != nil {
		return err
	}
	if p.async {
		return c.respondAsync(l, p)
	}
	v, err := c.ask(l.pod, l.message, l.timeout)
	return c.answer(outcomeOf(l.message.If, v, err))
}

// letter reads the message that a request brings. All that can be said of it
// without the entity has been checked then.
func (c *call) letter() (l letter, err error) {
	if l.pod, err = c.theEntity(); err != nil {
		return l, err
	}
	if l.timeout, err = c.timeout(); err != nil {
		return l, err
	}
	cond, err := c.condition()
	if err != nil {
		return l, err
	}
	body, err := c.body(jsonType)
	if err != nil {
		return l, err
	}
	spec := l.pod.Spec()
	if spec == nil {
		return l, readOnly(l.pod)
	}
	if l.message, err = c.api.parse(spec, c.message, body); err != nil {
		return l, err
	}
	l.message.If = cond
	return l, c.identify(l.message)
}

func readOnly(p *pod.Pod) error {
	return refuse(CodePodReadOnly, "pod "+p.Name()+" has a type that this program does not have; its entities can only be read")
}
