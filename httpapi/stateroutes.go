package httpapi

import (
	"fmt"
	"net/http"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/pod"
)

func getState(c *call) error {
	v, err := c.theView()
	if v == nil {
		return err
	}
	state, err := v.JSON()
	if err != nil {
		return err
	}
	return c.raw(http.StatusOK, state)
}

// write is what a request that writes state brings.
type write struct {
	pod     *pod.Pod
	spec    *entity.Spec
	cond    entity.Condition
	timeout time.Duration
	body    []byte
}

// readWrite reads a request that writes the state of a document.
func (c *call) readWrite(types ...string) (w write, err error) {
	if w.pod, err = c.theEntity(); err != nil {
		return w, err
	}
	if w.pod.Definition().Type != entity.KindDocument {
		return w, &failure{
			code:   CodeTypedState,
			detail: fmt.Sprintf("the entities of %s change only by messages: POST one to .../messages/{type}", c.pod),
			header: [2]string{"Allow", "OPTIONS, GET, HEAD"},
		}
	}
	w.spec = w.pod.Spec()
	if w.cond, err = conditionOf(c.r.Header); err != nil {
		return w, err
	}
	if w.timeout, err = c.timeout(); err != nil {
		return w, err
	}
	w.body, err = c.body(types...)
	return w, err
}

func putState(c *call) error {
	w, err := c.readWrite(jsonType)
	if err != nil {
		return err
	}
	m, err := w.spec.Replace(w.body)
	if err != nil {
		return err
	}
	m.If = w.cond
	if err := c.identify(m); err != nil {
		return err
	}
	ack, err := c.askAck(w.pod, m, w.timeout)
	if err != nil {
		return unmet(w.cond, err)
	}
	status := http.StatusOK
	if ack.Created {
		status = http.StatusCreated
		c.w.Header().Set("Location", entityPath(c.pod, c.entity))
	}
	return c.acknowledge(status, ack)
}

func patchState(c *call) error {
	w, err := c.readWrite(patchType, jsonType)
	if err != nil {
		return err
	}
	m, err := w.spec.Parse("merge", w.body)
	if err != nil {
		return err
	}
	m.If, m.NoCreate = w.cond, true
	if err := c.identify(m); err != nil {
		return err
	}
	ack, err := c.askAck(w.pod, m, w.timeout)
	if err != nil {
		return unmet(w.cond, err)
	}
	return c.acknowledge(http.StatusOK, ack)
}
