package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/pod"
)

// PodDescription describes a pod.
type PodDescription struct {
	Name string `json:"name"`
	pod.Definition
	// ReadOnly says that the pod's type is not part of this program, so that
	// its entities can only be read.
	ReadOnly bool `json:"readOnly,omitempty"`
	// Messages are those that the pod's entities handle, by name.
	Messages []MessageDescription `json:"messages"`
	// StateSchema is the JSON Schema of the states of a typed pod. Lists leave it
	// out.
	StateSchema json.RawMessage `json:"stateSchema,omitempty"`
	// History is what is kept of the changes of the pod's entities. Lists leave
	// it out.
	History *HistoryDescription `json:"history,omitempty"`
	// Figures are those of the server's run, in lists that ask for them.
	Figures *PodFigures `json:"figures,omitempty"`
}

// MessageDescription describes one message of a pod's entities.
type MessageDescription struct {
	Name string `json:"name"`
	// Kind is "on", "reply" or "query".
	Kind entity.HandlerKind `json:"kind"`
	// Creates says that the message creates an entity that does not exist.
	Creates bool `json:"creates"`
	// BodySchema and ReplySchema are the JSON Schemas of what a message of a typed
	// pod brings and is answered with. Lists leave them out.
	BodySchema  json.RawMessage `json:"bodySchema,omitempty"`
	ReplySchema json.RawMessage `json:"replySchema,omitempty"`
}

// PodList is a page of pods by name.
type PodList struct {
	Items []PodDescription `json:"items"`
	Next  string           `json:"next,omitempty"`
}

func describe(p *pod.Pod, spec *entity.Spec) PodDescription {
	d := PodDescription{Name: p.Name(), Definition: p.Definition(), ReadOnly: spec == nil, Messages: []MessageDescription{}}
	if spec != nil {
		for _, h := range spec.Handlers() {
			d.Messages = append(d.Messages, MessageDescription{Name: h.Name, Kind: h.Kind, Creates: h.Creates})
		}
	}
	return d
}

// describeWhole is describe with what lists leave out.
func (c *call) describeWhole(p *pod.Pod) PodDescription {
	spec := p.Spec()
	d := describe(p, spec)
	if spec != nil && spec.Kind == entity.KindTyped {
		d.StateSchema = aloneSchema(spec.State, false)
		for i, h := range spec.Handlers() {
			reply := h.Reply
			if h.Kind == entity.KindOn {
				reply = reflect.TypeFor[entity.Ack]()
			}
			d.Messages[i].BodySchema, d.Messages[i].ReplySchema = aloneSchema(h.Message, true), aloneSchema(reply, false)
		}
	}
	return c.withHistory(d, p)
}

func listPods(c *call) error {
	o, err := c.page()
	if err != nil {
		return err
	}
	figures, err := c.flag("figures")
	if err != nil {
		return err
	}
	list := PodList{Items: []PodDescription{}}
	for _, p := range c.api.pods.All() {
		switch {
		case p.Name() <= o.After:
		case len(list.Items) == o.Limit:
			list.Next = c.cursor(list.Items[o.Limit-1].Name)
			return c.json(http.StatusOK, list)
		default:
			d := describe(p, p.Spec())
			if figures {
				d.Figures = c.api.figuresOf(p.Name())
			}
			list.Items = append(list.Items, d)
		}
	}
	return c.json(http.StatusOK, list)
}

func getPod(c *call) error {
	p, err := c.thePod()
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, c.describeWhole(p))
}

func putPod(c *call) error {
	if err := c.checkPod(); err != nil {
		return err
	}
	timeout, err := c.timeout()
	if err != nil {
		return err
	}
	data, err := c.body(jsonType)
	if err != nil {
		return err
	}
	var def pod.Definition
	if err := c.api.decode(data, &def); err != nil {
		return err
	}
	ctx, cancel := c.api.pods.System().WithTimeout(c.r.Context(), timeout)
	defer cancel()
	p, created, _, err := c.api.pods.Declare(ctx, c.pod, def)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		c.w.Header().Set("Location", podPath(c.pod))
	}
	return c.json(status, c.describeWhole(p))
}

func deletePod(c *call) error {
	if err := c.checkPod(); err != nil {
		return err
	}
	timeout, err := c.timeout()
	if err != nil {
		return err
	}
	cascade, err := c.flag("cascade")
	if err != nil {
		return err
	}
	ctx, cancel := c.api.pods.System().WithTimeout(c.r.Context(), timeout)
	defer cancel()
	err = c.api.pods.Drop(ctx, c.pod, cascade)
	switch {
	case errors.Is(err, pod.ErrNotEmpty):
		return refuse(CodePodNotEmpty, err.Error()+"; ?cascade=true deletes them with it")
	case err != nil:
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
