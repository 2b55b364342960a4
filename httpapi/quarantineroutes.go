package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

// QuarantineList is a page of the entities that cannot be read.
type QuarantineList struct {
	Items []QuarantinedLine `json:"items"`
	Next  string            `json:"next,omitempty"`
}

// QuarantinedEntity is one that cannot be read, with what is left of it.
type QuarantinedEntity struct {
	Pod  string `json:"pod"`
	Name string `json:"name"`
	// Quarantined is the reason.
	Quarantined string `json:"quarantined"`
	// Record is what the store has. It is left out when not even the record's
	// envelope can be read.
	Record *QuarantinedRecord `json:"record,omitempty"`
}

// QuarantinedRecord is a record whose envelope is whole.
type QuarantinedRecord struct {
	Life     uint64    `json:"life"`
	Revision uint64    `json:"revision"`
	Changed  time.Time `json:"changed"`
	// Schema is the version of the type that wrote the state.
	Schema uint32 `json:"schema"`
	Codec  string `json:"codec"`
	// Size is how many bytes the state has.
	Size int `json:"size"`
	// State is the state as it is stored, in base64: the first 64 KiB of it.
	State []byte `json:"state"`
}

// maxRawState is the most bytes of a state that are shown.
const maxRawState = 64 << 10

// listQuarantine pages by pod and name.
func listQuarantine(c *call) error {
	o, err := c.page()
	if err != nil {
		return err
	}
	list := QuarantineList{Items: []QuarantinedLine{}}
	for _, q := range c.api.pods.Quarantined() {
		switch {
		case !behind(q, o.After):
		case len(list.Items) == o.Limit:
			last := list.Items[o.Limit-1]
			list.Next = c.cursor(last.Pod + "/" + last.Name)
			return c.json(http.StatusOK, list)
		default:
			list.Items = append(list.Items, QuarantinedLine{Pod: q.Pod, Name: q.Name, Quarantined: q.Reason.Error()})
		}
	}
	return c.json(http.StatusOK, list)
}

// behind reports whether an entity comes behind pod/name in the order of the
// list, which is by pod and then by name. No pod has a slash in its name.
func behind(q pod.Quarantined, after string) bool {
	p, name, _ := strings.Cut(after, "/")
	return q.Pod > p || q.Pod == p && q.Name > name
}

// showQuarantined answers with one entity of the list, or one that would be on
// it if somebody had read it before.
func showQuarantined(c *call) error {
	p, err := c.theEntity()
	if err != nil {
		return err
	}
	timeout, err := c.timeout()
	if err != nil {
		return err
	}
	ctx, cancel := c.api.pods.System().WithTimeout(c.r.Context(), timeout)
	defer cancel()
	reason, err := c.whyUnreadable(ctx, p, timeout)
	if err != nil {
		return err
	}
	q := QuarantinedEntity{Pod: c.pod, Name: c.entity, Quarantined: reason.Error()}
	r, err := c.api.pods.Committer().Service().Load(ctx, persist.Key{Pod: c.pod, Name: c.entity})
	if err == nil {
		q.Record = &QuarantinedRecord{
			Life: r.Life, Revision: r.Revision, Changed: r.Changed.UTC(), Schema: r.Schema, Codec: r.Codec,
			Size: len(r.State), State: append([]byte{}, r.State[:min(len(r.State), maxRawState)]...),
		}
	}
	return c.json(http.StatusOK, q)
}

// whyUnreadable has the entity read and returns why that fails. The entity
// itself is asked: it reads more than its record.
func (c *call) whyUnreadable(ctx context.Context, p *pod.Pod, timeout time.Duration) (reason, err error) {
	if p.Spec() != nil {
		_, err = c.ask(p, entity.Touch(), timeout)
	}
	if err == nil {
		_, err = p.Get(ctx, c.entity)
	}
	switch {
	case errors.Is(err, entity.ErrQuarantined):
		return err, nil
	case err != nil:
		return nil, err
	}
	return nil, c.notQuarantined()
}

func (c *call) notQuarantined() error {
	return refuse(CodeNotQuarantined, fmt.Sprintf("%s/%s is not quarantined: it can be read", c.pod, c.entity))
}

// retryQuarantined has the entity read again and answers with it.
func retryQuarantined(c *call) error {
	p, err := c.theEntity()
	if err != nil {
		return err
	}
	timeout, err := c.timeout()
	if err != nil {
		return err
	}
	if p.Spec() != nil { // of the others there is nothing but the record
		if _, err := c.ask(p, entity.Retry(), timeout); err != nil {
			return err
		}
	}
	ctx, cancel := c.api.pods.System().WithTimeout(c.r.Context(), timeout)
	defer cancel()
	v, err := p.Get(ctx, c.entity)
	if err != nil {
		return err
	}
	e, err := envelope(&v)
	if err != nil {
		return err
	}
	c.w.Header().Set("ETag", quoted(v.ETag()))
	return c.json(http.StatusOK, e)
}

// removeQuarantined ends the life of an entity that cannot be read. One that can
// be read is not touched, however it came to that: no revision meets the
// condition, and only those that are quarantined are deleted without a look at
// it.
func removeQuarantined(c *call) error {
	p, err := c.theEntity()
	if err != nil {
		return err
	}
	timeout, err := c.timeout()
	if err != nil {
		return err
	}
	_, err = c.askAck(p, entity.Delete(entity.Condition{Match: []entity.ETag{}}), timeout)
	switch {
	case errors.Is(err, entity.ErrStale):
		return c.notQuarantined()
	case err != nil:
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
