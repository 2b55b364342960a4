package httpapi

import (
	"net/http"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/pod"
)

// postMessage gives an entity a message and answers with the entity's answer. A
// message that creates the entity is answered with 200 like any other: the
// answer is the handler's, and says what it wants to say.
func postMessage(c *call) error {
	p, err := c.theEntity()
	if err != nil {
		return err
	}
	timeout, err := c.timeout()
	if err != nil {
		return err
	}
	cond, err := conditionOf(c.r.Header)
	if err != nil {
		return err
	}
	body, err := c.body(jsonType)
	if err != nil {
		return err
	}
	spec := p.Spec()
	if spec == nil {
		return readOnly(p)
	}
	m, err := spec.Parse(c.message, body)
	if err != nil {
		return err
	}
	m.If = cond
	if err := c.identify(m); err != nil {
		return err
	}
	v, err := c.ask(p, m, timeout)
	if err != nil {
		return unmet(cond, err)
	}
	if ack, ok := v.(entity.Ack); ok {
		return c.acknowledge(http.StatusOK, ack)
	}
	data, err := encode(v)
	if err != nil {
		return &failure{
			code: CodeHandlerFailed, cause: err,
			detail: "the message was handled, and its reply cannot be written as JSON: " + err.Error(),
		}
	}
	return c.raw(http.StatusOK, data)
}

func readOnly(p *pod.Pod) error {
	return refuse(CodePodReadOnly, "pod "+p.Name()+" has a type that this program does not have; its entities can only be read")
}
