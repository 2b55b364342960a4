package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/pod"
	"github.com/twinsrv/twinsrv/snapshot"
)

// Envelope is an entity with what the server knows of it.
type Envelope struct {
	Pod      string          `json:"pod"`
	Name     string          `json:"name"`
	Life     uint64          `json:"life"`
	Revision uint64          `json:"revision"`
	Changed  time.Time       `json:"changed"`
	State    json.RawMessage `json:"state"`
}

// QuarantinedLine stands in a list for an entity that cannot be read.
type QuarantinedLine struct {
	// Pod is left out in lists of one pod.
	Pod  string `json:"pod,omitempty"`
	Name string `json:"name"`
	// Quarantined is the reason.
	Quarantined string `json:"quarantined"`
}

// EntityList is a page of a pod's entities by name. Items are Envelopes, and a
// QuarantinedLine for each entity that cannot be read.
type EntityList struct {
	Items []any  `json:"items"`
	Next  string `json:"next,omitempty"`
}

func envelope(v *pod.View) (Envelope, error) {
	state, err := v.JSON()
	return Envelope{Pod: v.Pod, Name: v.Name, Life: v.Life, Revision: v.Revision, Changed: v.Changed.UTC(), State: state}, err
}

// listEntities lists a pod's entities, or answers a query over them.
func listEntities(c *call) error {
	more, err := c.asksMore()
	switch {
	case err != nil:
		return err
	case more:
		return queryEntities(c)
	}
	p, err := c.thePod()
	if err != nil {
		return err
	}
	o, err := c.page()
	if err != nil {
		return err
	}
	ctx, cancel, err := c.bounded()
	if err != nil {
		return err
	}
	defer cancel()
	page, err := p.List(ctx, o)
	if err != nil {
		return inTime(ctx, err)
	}
	list := EntityList{Items: []any{}}
	if page.Next != "" {
		list.Next = c.cursor(page.Next)
	}
	for _, i := range page.Items {
		if i.Err != nil {
			list.Items = append(list.Items, QuarantinedLine{Name: i.Name, Quarantined: i.Err.Error()})
			continue
		}
		e, err := envelope(&i.View)
		if err != nil {
			return err
		}
		list.Items = append(list.Items, e)
	}
	return c.json(http.StatusOK, list)
}

// theView reads the entity that the path names, at the revision or the time that
// the query does. When the request's conditions
// say that it is not to be shown, it is answered already, and v is nil.
func (c *call) theView() (v *pod.View, err error) {
	p, err := c.theEntity()
	if err != nil {
		return nil, err
	}
	got, err := c.boundedView(p)
	if err != nil {
		return nil, err
	}
	if answered, err := c.fresh(&got); answered {
		return nil, err
	}
	return &got, nil
}

// boundedView reads what the request asks for in its time. What is in memory
// needs none.
func (c *call) boundedView(p *pod.Pod) (pod.View, error) {
	if c.r.URL.RawQuery == "" && c.r.Header.Get(preferHeader) == "" {
		if v, ok := p.Resident(c.entity); ok {
			return v, nil
		}
	}
	ctx, cancel, err := c.bounded()
	if err != nil {
		return pod.View{}, err
	}
	defer cancel()
	v, err := c.viewOf(ctx, p)
	if err != nil {
		return v, inTime(ctx, err)
	}
	return v, nil
}

func getEntity(c *call) error {
	v, err := c.theView()
	if v == nil {
		return err
	}
	e, err := envelope(v)
	if err != nil {
		return err
	}
	data, err := e.append(make([]byte, 0, len(e.State)+160))
	if err != nil {
		return err
	}
	return c.raw(http.StatusOK, data)
}

// append writes the envelope without reflection: it is what is read most.
func (e *Envelope) append(b []byte) (_ []byte, err error) {
	if b, err = snapshot.AppendJSON(append(b, `{"pod":`...), e.Pod); err != nil {
		return b, err
	}
	if b, err = snapshot.AppendJSON(append(b, `,"name":`...), e.Name); err != nil {
		return b, err
	}
	b = strconv.AppendUint(append(b, `,"life":`...), e.Life, 10)
	b = strconv.AppendUint(append(b, `,"revision":`...), e.Revision, 10)
	b = e.Changed.AppendFormat(append(b, `,"changed":"`...), time.RFC3339Nano)
	b = append(append(b, `","state":`...), e.State...)
	return append(b, '}'), nil
}

func deleteEntity(c *call) error {
	p, err := c.theEntity()
	if err != nil {
		return err
	}
	timeout, err := c.timeout()
	if err != nil {
		return err
	}
	cond, err := c.condition()
	if err != nil {
		return err
	}
	discard, err := c.flag("discard")
	if err != nil {
		return err
	}
	m := entity.Delete(cond)
	if discard {
		m = entity.Discard()
		m.If = cond
	}
	if _, err := c.askAck(p, m, timeout); err != nil {
		return unmet(cond, err)
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// rebuildEntity has an event-sourced entity made again from its events.
func rebuildEntity(c *call) error {
	p, err := c.theEntity()
	if err != nil {
		return err
	}
	timeout, err := c.timeout()
	if err != nil {
		return err
	}
	ack, err := c.askAck(p, entity.Rebuild(), timeout)
	if err != nil {
		return err
	}
	return c.acknowledge(http.StatusOK, ack)
}
