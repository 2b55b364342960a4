package patterns

import (
	"fmt"
	"strconv"

	"github.com/twinsrv/twinsrv/actor"
)

// Stage is one actor of a Pipeline, or with PipelineHub several. As a message it
// adds itself to a PipelineBuilder.
type Stage struct {
	// Name is the actor's. "" means its place, from 1 on.
	Name  string
	Props actor.Props

	members []Stage
}

// PipelineHub returns a stage that fans out: each message goes to all members,
// and what each answers goes on by itself. The members are children of the
// pipeline under their own names; those without one are called by the hub's name
// and their place, as in "feeds.1". All get the same value, so they must not
// change what it points to.
func PipelineHub(name string, members ...Stage) Stage {
	return Stage{Name: name, members: members}
}

// ToStage is a message to a Pipeline: the stage of that name, or the member of a
// hub, gets Message with the sender and the ask that the ToStage came with. The
// answer does not go on to the next stage.
type ToStage struct {
	Stage   string
	Message any
}

// StageFailed is what became of a message that a stage failed on: the error of an
// ask, and a message to whoever sent what was told.
type StageFailed struct {
	Stage   string
	Message any // what the stage was given
	Err     error
}

// Error names the stage and its failure.
func (f StageFailed) Error() string { return "stage " + f.Stage + ": " + f.Err.Error() }

// Unwrap returns the stage's failure.
func (f StageFailed) Unwrap() error { return f.Err }

// layout gives each actor its name. The result is one list for each stage, with
// several actors where that is a hub.
func layout(stages []Stage) ([][]Stage, error) {
	taken := make(map[string]bool)
	all := make([][]Stage, len(stages))
	for i, s := range stages {
		if s.Name == "" {
			s.Name = strconv.Itoa(i + 1)
		}
		for _, one := range s.actors() {
			switch {
			case one.Props.New == nil:
				return nil, fmt.Errorf("pipeline: %w: stage %q has no Props.New", actor.ErrInvalid, one.Name)
			case taken[one.Name]:
				return nil, fmt.Errorf("pipeline: %w: two stages are called %q; give each a name of its own", actor.ErrInvalid, one.Name)
			}
			taken[one.Name] = true
			all[i] = append(all[i], one)
		}
	}
	return all, nil
}

// actors returns a stage's actors: itself, or the members of a hub and of the
// hubs in it.
func (s Stage) actors() (all []Stage) {
	if s.members == nil {
		return []Stage{s}
	}
	for i, m := range s.members {
		if m.Name == "" {
			m.Name = s.Name + "." + strconv.Itoa(i+1)
		}
		all = append(all, m.actors()...)
	}
	return all
}
