package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

// The pods of documents, which are declared and not programmed.
const (
	papers  = "papers"  // synchronous
	scratch = "scratch" // volatile, and dropped at times
)

// declare makes the pods of documents, or changes what creates their entities.
func (w *process) declare(by ...string) error {
	_, _, _, err := w.pods.Declare(context.Background(), papers, pod.Definition{Type: "document", Create: pod.CreateDefinition{By: by}, Index: w.indexing.paths(w.run, papers)})
	if err == nil {
		_, _, _, err = w.pods.Declare(context.Background(), scratch, pod.Definition{Type: "document", Durability: "volatile", Index: w.indexing.paths(w.run, scratch)})
	}
	return err
}

// scribble is a message as JSON, which need not be one.
func scribble(s step) (name string, body []byte) {
	pointers := []string{"/x/y/z", "/list/-", "/list/0", "/list/7", "/~0~1", "x", "/list/01", "/x", "", "/x/y"}
	at := pointers[s.at%len(pointers)]
	switch s.n {
	case 0:
		return "set", []byte(`{"pointer":"/list","value":[1,{"a":null}]}`)
	case 1:
		return "merge", []byte(`{"x":{"y":null},"list":[]`)
	case 2:
		return "unknown", nil
	case 3, 4, 5:
		return "remove", fmt.Appendf(nil, `{"pointer":%q}`, at)
	case 6, 7:
		return "merge", []byte(`{"x":{"y":{"z":1}},"list":[1,2,3]}`)
	}
	return "set", fmt.Appendf(nil, `{"pointer":%q,"value":{"n":%d}}`, at, s.n)
}

// paper is what is known of a member of a document.
type paper struct {
	acked, removed, refused bool
}

// write does something to a document, or to the pods of documents.
func (w *process) write(s step) {
	if s.op == "drop" || s.op == "declare" {
		w.jobs++
		w.sys.Go(func() {
			var err error
			if s.op == "drop" {
				err = w.pods.Drop(context.Background(), scratch, s.n%4 > 0)
			} else if err = w.declare([]string{"merge", "set"}[:1+s.n%2]...); err == nil && s.n%3 == 0 {
				err = w.declare()
			}
			w.jobs--
			if !w.dead {
				w.note("%s: %v", s.op, err)
			}
		})
		return
	}
	id, msg := s.name+"."+s.id, any(entity.Merge{s.id: true})
	switch s.op {
	case "set":
		msg = entity.Set{Pointer: "/" + s.id, Value: map[string]any{"a": []any{1, "x"}}}
	case "remove":
		id = s.name + "." + s.to
		msg = entity.Remove{Pointer: "/" + s.to}
	}
	p, err := w.pods.Pod(s.pod)
	if err != nil {
		w.note("%v", err)
		return
	}
	if s.pod == scratch {
		name, body := scribble(s)
		if s.n == 8 {
			msg, err = p.Spec().Replace(body)
		} else {
			msg, err = p.Spec().Parse(name, body)
		}
		if err != nil {
			w.note("%v", err)
			return
		}
	}
	key := &op{step: s}
	w.waiting[key] = true
	reply := w.sys.OnReply(func(_ any, err error) {
		delete(w.waiting, key)
		if !w.dead && s.pod == papers {
			w.written(s, id, err)
		}
	})
	if err := p.Ref(s.name).Post(actor.Message{Payload: msg, Reply: reply}); err != nil {
		reply.Fail(err)
	}
}

func (w *process) written(s step, id string, err error) {
	w.tick()
	w.note("%s of %s: %v", s.op, id, err)
	known := w.papers[id]
	switch unknown := errors.Is(err, persist.ErrUnknown) || errors.Is(err, actor.ErrTimeout); {
	case s.op == "remove":
		known.removed = known.removed || err == nil || unknown
	case err == nil:
		known.acked = true
	case !unknown:
		known.refused = true
	}
	w.papers[id] = known
}

// checkPapers looks whether the documents have the members that they must have.
func (w *process) checkPapers() {
	p, err := w.pods.Pod(papers)
	w.must(err)
	there := map[string]bool{}
	for i := range w.plan.names {
		v, err := p.Get(context.Background(), entityName(i))
		if errors.Is(err, entity.ErrNotFound) {
			continue
		}
		w.must(err)
		members, err := decoded[map[string]any](&v)
		w.must(err)
		for m := range members {
			there[entityName(i)+"."+m] = true
		}
	}
	for _, id := range sortedKeys(w.papers) {
		switch known := w.papers[id]; {
		case known.acked && !known.removed && !there[id]:
			w.wrong("G5: the member %s was acknowledged, and is not there", id)
		case known.refused && there[id]:
			w.wrong("G3: the member %s was refused, and is there", id)
		}
	}
}
