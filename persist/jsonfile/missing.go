package jsonfile

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/twinsrv/twinsrv/persist"
)

// maxNamed is how many files an error names.
const maxNamed = 5

// changed names the files of a pod that went (lack > 0) or came while the store
// was closed, as far as the journal tells: an entity whose last change is there
// and is no deletion must have a file, and one without changes is a stranger.
// Where history was dropped, some are not told, and strangers may be none.
func (r *loading) changed(pod string, lack int) string {
	var paths []string
	word := "missing"
	if lack > 0 {
		for key := range r.x.past {
			if e := r.x.entities[key]; key.Pod == pod && (e == nil || !e.present) && r.last(key) == lastLives {
				paths = append(paths, filepath.Base(r.s.file(key)))
			}
		}
	} else {
		word, lack = "added", -lack
		for key, e := range r.x.entities {
			if key.Pod == pod && e.present && r.last(key) == lastGone {
				paths = append(paths, filepath.Base(r.s.file(key)))
			}
		}
	}
	n := len(paths)
	if n == 0 {
		return ""
	}
	slices.Sort(paths)
	if n > maxNamed {
		paths = append(paths[:maxNamed], fmt.Sprintf("and %d more", n-maxNamed))
	}
	if n > lack {
		word += ", by the journal, are some of these"
	}
	return fmt.Sprintf(" (%s: %s)", word, strings.Join(paths, ", "))
}

// stray is a file in the place of an entity that has another one's content.
type stray struct{ at, of persist.Key }

// renamed tells files that were renamed, or copied where others went: the number
// of files is as it was, and the entities that have none would pass for absent.
func (r *loading) renamed() error {
	var said []string
	hidden, missing := false, ""
	for i, f := range r.strays {
		e := r.x.entities[f.of]
		hidden = hidden || e == nil || !e.present
		if missing == "" && (i == 0 || f.at.Pod != r.strays[i-1].at.Pod) {
			missing = r.changed(f.at.Pod, 1)
		}
		said = append(said, fmt.Sprintf("%s is that of %s", r.s.file(f.at), f.of))
	}
	if !hidden && missing == "" {
		return nil // each is unreadable, and that is all
	}
	if n := len(said); n > maxNamed {
		said = append(said[:maxNamed], fmt.Sprintf("and %d more", n-maxNamed))
	}
	return fmt.Errorf("%s: %w: files of entities were copied or renamed: %s%s: give renamed ones their names back and take copies away, or %s",
		r.s.dir, ErrDamaged, strings.Join(said, "; "), missing, asItIs)
}

// What the newest change of an entity says of it.
const (
	lastGone    = iota // it was deleted, or has no changes
	lastLives          // it is there
	lastUnknown        // the change cannot be read
)

func (r *loading) last(key persist.Key) int {
	h := r.x.past[key]
	if h == nil {
		return lastGone
	}
	e := r.x.at(h.positions[len(h.positions)-1])
	if e == nil || e.bad {
		return lastUnknown
	}
	switch l, err := r.s.readEntry(e); {
	case err != nil:
		return lastUnknown
	case l.Delete:
		return lastGone
	}
	return lastLives
}
