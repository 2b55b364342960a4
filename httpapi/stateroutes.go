package httpapi

import (
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

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

// typedAllow are the methods of the state of a typed entity.
const typedAllow = "OPTIONS, GET, HEAD"

// stateOptions answers OPTIONS of a path of states: those of typed entities are
// only read. Of what type a pod is, only those learn who may read.
func (a *API) stateOptions(path string) echo.HandlerFunc {
	allow := typedAllow
	for _, op := range operations() {
		if op.path == path && op.method != http.MethodGet {
			allow += ", " + op.method
		}
	}
	return func(c echo.Context) error {
		r, allow := c.Request(), allow
		if at, ok := r.Context().Value(routeKey{}).(*route); ok && a.authorize(&operation{method: http.MethodGet}, r) == nil {
			if p, err := a.pods.Pod(at.pod); err == nil && p.Definition().Type != entity.KindDocument {
				allow = typedAllow
			}
		}
		c.Response().Header().Set(echo.HeaderAllow, allow)
		return c.NoContent(http.StatusNoContent)
	}
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
			header: [2]string{"Allow", typedAllow},
		}
	}
	w.spec = w.pod.Spec()
	if w.cond, err = c.condition(); err != nil {
		return w, err
	}
	if w.timeout, err = c.timeout(); err != nil {
		return w, err
	}
	w.body, err = c.body(types...)
	return w, err
}

// send gives the entity the message that the request comes to, and returns its
// acknowledgement.
func (c *call) send(w write, m *entity.Message) (entity.Ack, error) {
	m.If = w.cond
	if err := c.identify(m); err != nil {
		return entity.Ack{}, err
	}
	ack, err := c.askAck(w.pod, m, w.timeout)
	if err != nil {
		return ack, unmet(w.cond, err)
	}
	return ack, nil
}

// sendAnswered is send that answers with the acknowledgement: with 201 when the
// entity was created.
func (c *call) sendAnswered(w write, m *entity.Message) error {
	ack, err := c.send(w, m)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if ack.Created {
		status = http.StatusCreated
		c.w.Header().Set("Location", entityPath(c.pod, c.entity))
	}
	return c.acknowledge(status, ack)
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
	return c.sendAnswered(w, m)
}

// patchState applies the patch that the body's media type says: a JSON patch, or
// else a merge patch.
func patchState(c *call) error {
	w, err := c.readWrite(patchType, jsonPatchType, jsonType)
	if err != nil {
		return err
	}
	message := "merge"
	if c.mediaType() == jsonPatchType {
		message = "patch"
	}
	m, err := c.api.parse(w.spec, message, w.body)
	if err != nil {
		return err
	}
	m.NoCreate = true
	return c.sendAnswered(w, m)
}
