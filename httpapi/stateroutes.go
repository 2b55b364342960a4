package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/pod"
)

func getState(c *call) error {
	p, err := c.theEntity()
	if err != nil {
		return err
	}
	v, err := p.Get(c.r.Context(), c.entity)
	if err != nil {
		return err
	}
	if answered, err := c.fresh(&v); answered {
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
	rounds  int
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
	ack, created, err := c.replace(&w)
	if err != nil {
		return unmet(w.cond, err)
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		c.w.Header().Set("Location", entityPath(c.pod, c.entity))
	}
	return c.acknowledge(status, ack)
}

// maxRounds is how often a PUT is tried while others create and delete the
// entity just between two tries.
const maxRounds = 16

// replace sends the new state in a message that can either only create or only
// replace, so that its success says which it was: the revision alone does not,
// since an entity that was just created and one that was given the same state
// again are both at revision 1.
func (c *call) replace(w *write) (ack entity.Ack, created bool, err error) {
	switch {
	case w.cond.Absent:
		ack, err = c.send(w, w.cond, false)
		return ack, true, err
	case w.cond.Exists || w.cond.Match != nil:
		ack, err = c.send(w, w.cond, false)
		return ack, false, err
	}
	_, err = w.pod.Get(c.r.Context(), c.entity)
	for absent := errors.Is(err, entity.ErrNotFound); ; absent = !absent {
		if absent {
			only := w.cond
			only.Absent = true
			if ack, err = c.send(w, only, false); !errors.Is(err, entity.ErrStale) {
				return ack, true, err
			}
		} else if ack, err = c.send(w, w.cond, true); !errors.Is(err, entity.ErrNotFound) {
			return ack, false, err
		}
		if w.rounds++; w.rounds == maxRounds {
			return ack, false, refuse(CodeConflict, "others keep creating and deleting the entity; nothing was changed, so try again")
		}
	}
}

// send sends the request's state once.
func (c *call) send(w *write, cond entity.Condition, noCreate bool) (entity.Ack, error) {
	m, err := w.spec.Replace(w.body)
	if err != nil {
		return entity.Ack{}, err
	}
	m.If, m.NoCreate = cond, noCreate
	return c.askAck(w.pod, m, w.timeout)
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
	ack, err := c.askAck(w.pod, m, w.timeout)
	if err != nil {
		return unmet(w.cond, err)
	}
	return c.acknowledge(http.StatusOK, ack)
}
