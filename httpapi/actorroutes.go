package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/twinsrv/twinsrv/actor"
)

// ActorList is a part of the tree of actors, parents before their children and
// those by name.
type ActorList struct {
	Items []ActorLine `json:"items"`
	Next  string      `json:"next,omitempty"`
}

// ActorLine is one actor.
type ActorLine struct {
	// Path leads to the actor from the root. A slash in a name is written %2F, a
	// percent sign %25, an asterisk %2A.
	Path string `json:"path"`
	// Mailbox is how many messages wait, Capacity how many may; 0 is no bound.
	Mailbox  int `json:"mailbox"`
	Capacity int `json:"capacity"`
	Children int `json:"children"`
	// Restarts and Failures count from the server's start, as long as there are
	// not too many actors that have any.
	Restarts int `json:"restarts"`
	Failures int `json:"failures"`
	// Stopping says that the actor takes no messages any more.
	Stopping bool `json:"stopping,omitempty"`
}

const (
	defaultDepth = 2
	maxDepth     = 100
	// maxTroubled is how many actors' failures are counted.
	maxTroubled = 10_000
)

// troubles counts the failures and restarts of actors by their paths. It is safe
// for concurrent use.
type troubles struct {
	cancel func()

	mu     sync.Mutex
	byPath map[string]trouble
	all    trouble
}

type trouble struct{ failures, restarts int }

func (t *troubles) listen(sys *actor.System) {
	t.byPath = make(map[string]trouble)
	t.cancel = sys.Events().Subscribe(func(e actor.Event) {
		switch e.Kind {
		case actor.ActorFailed:
			t.add(e.Ref, trouble{failures: 1})
		case actor.ActorRestarted:
			t.add(e.Ref, trouble{restarts: 1})
		}
	})
}

func (t *troubles) add(r *actor.Ref, one trouble) {
	path := r.Path()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = t.all.plus(one)
	if was, is := t.byPath[path]; is || len(t.byPath) < maxTroubled {
		t.byPath[path] = was.plus(one)
	}
}

func (t trouble) plus(o trouble) trouble {
	return trouble{t.failures + o.failures, t.restarts + o.restarts}
}

func (t *troubles) of(path string) trouble {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byPath[path]
}

func (t *troubles) total() trouble {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all
}

// listActors pages through the tree below a path.
func listActors(c *call) error {
	o, err := c.page()
	if err != nil {
		return err
	}
	depth, err := c.count("depth", defaultDepth, maxDepth)
	if err != nil {
		return err
	}
	q, err := c.query()
	if err != nil {
		return err
	}
	root := c.api.pods.System().Root()
	if path := q.Get("path"); path != "" {
		if root, err = c.api.pods.System().Lookup(path); errors.Is(err, actor.ErrNotFound) {
			return refuse(CodeNotFound, fmt.Sprintf("there is no actor %q", path))
		} else if err != nil {
			return err
		}
	}
	w := actorWalk{api: c.api, limit: o.Limit, depth: depth}
	if o.After != "" {
		w.after = strings.Split(o.After[:len(o.After)-1], "\x00")
	}
	w.visit(root, nil)
	list := ActorList{Items: w.items}
	if w.more {
		list.Next = c.cursor(strings.Join(w.last, "\x00") + "\x00") // never empty
	}
	return c.json(http.StatusOK, list)
}

// actorWalk goes through a tree behind the actor that a page ended with. That
// one is given by the names that lead to it, since it may have gone meanwhile.
type actorWalk struct {
	api          *API
	limit, depth int
	after        []string // nil: the page starts at the root
	items        []ActorLine
	last         []string
	more         bool
}

// visit reports whether the walk goes on. below are the names that lead from the
// root to r.
func (w *actorWalk) visit(r *actor.Ref, below []string) bool {
	children := r.Children()
	if w.after == nil || behindNames(below, w.after) {
		if len(w.items) == w.limit {
			w.more = true
			return false
		}
		path := r.Path()
		t := w.api.troubles.of(path)
		w.items = append(w.items, ActorLine{
			Path: path, Mailbox: r.MailboxLen(), Capacity: r.MailboxCap(), Children: len(children),
			Restarts: t.restarts, Failures: t.failures, Stopping: r.Stopped(),
		})
		w.last = append([]string{""}, below...)
	}
	if len(below) == w.depth {
		return true
	}
	for _, child := range children {
		name := child.Name()
		if w.skips(below, name) {
			continue
		}
		if !w.visit(child, append(below[:len(below):len(below)], name)) {
			return false
		}
	}
	return true
}

// skips reports whether all that is below a child stood on earlier pages.
func (w *actorWalk) skips(below []string, name string) bool {
	if w.after == nil {
		return false
	}
	after := w.after[1:]
	if i := len(below); i < len(after) && slices.Equal(below, after[:i]) {
		return name < after[i]
	}
	return false // below is skipped as a whole, or lies behind the last one
}

// behindNames reports whether an actor comes behind another in the order of the
// tree.
func behindNames(below, after []string) bool {
	after = after[1:] // the first stands for the root
	for i := range below {
		if i == len(after) {
			return true
		}
		if below[i] != after[i] {
			return below[i] > after[i]
		}
	}
	return false
}
