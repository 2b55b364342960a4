package httpapi

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/snapshot"
)

// maxMissing is how many violations are told of one message.
const maxMissing = 20

// parse binds a body to the message of a name. A typed message must have all that
// its schema in the OpenAPI document says is required: a member that is left out
// would else be a zero that nobody has sent. Documents see to that themselves.
func (a *API) parse(spec *entity.Spec, name string, body []byte) (*entity.Message, error) {
	m, tree, err := spec.ParseTree(name, body)
	if err == nil {
		m.JSON = true
	}
	if err == nil && spec.Kind != entity.KindTyped || err != nil && !errors.Is(err, entity.ErrMalformed) {
		return m, err
	}
	s := a.shapes.of(spec)[name]
	switch {
	case s == nil || err == nil && !s.demands:
		return m, err
	case err != nil:
		return nil, malformed(s, spec.Name, name, body, err)
	}
	if missing := s.missing(tree, "", nil); missing != nil {
		f := refuse(CodeSchemaViolation, fmt.Sprintf("the message %q of pod %s does not fit its schema; %s: %s", name, spec.Name, place(missing[0].Pointer), missing[0].Message))
		f.violations = missing
		return nil, f
	}
	return m, nil
}

// malformed says in the words of JSON what is wrong with a body, if that is its
// types.
func malformed(s *messageShape, pod, name string, body []byte, err error) error {
	tree, invalid := snapshot.ParseJSON(body)
	if invalid != nil {
		if len(strings.TrimSpace(string(body))) > 0 {
			return err
		}
		tree = map[string]any{} // a message without fields
	}
	at, what := s.misfit(tree, "")
	if what == "" && tree == nil { // which no message is, whatever may be null inside
		what = "is null, and no message is"
		if to := s.behind(); to.kind != reflect.Invalid {
			what = "is null, and must be " + to.wanted()
		}
	}
	if what == "" {
		return err
	}
	return fmt.Errorf("%w: %q of pod %s: %s %s", entity.ErrMalformed, name, pod, place(at), what)
}

// place names a JSON pointer to people.
func place(pointer string) string {
	if pointer == "" {
		return "the whole"
	}
	return pointer
}

// shapes are those of the messages of typed pods, by pod. A program has so many
// of them, and no more. It is safe for concurrent use.
type shapes struct {
	mu    sync.RWMutex
	byPod map[string]podShapes
}

type podShapes struct {
	spec   *entity.Spec
	byName map[string]*messageShape
}

// messageShape is the shape of a message, and whether something in it must be
// there.
type messageShape struct {
	*jsonShape
	demands bool
}

// of returns the shapes of a spec's messages by their names.
func (s *shapes) of(spec *entity.Spec) map[string]*messageShape {
	s.mu.RLock()
	known := s.byPod[spec.Name]
	s.mu.RUnlock()
	if known.spec == spec {
		return known.byName
	}
	made := podShapes{spec: spec, byName: make(map[string]*messageShape)}
	all := make(map[reflect.Type]*jsonShape)
	for _, h := range spec.Handlers() {
		s := shapeOf(h.Message, all)
		made.byName[h.Name] = &messageShape{s, s.asksFor(make(map[*jsonShape]bool))}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byPod == nil {
		s.byPod = make(map[string]podShapes)
	}
	s.byPod[spec.Name] = made
	return made.byName
}
