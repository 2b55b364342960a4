package patterns

import (
	"fmt"
	"slices"

	"github.com/twinsrv/twinsrv/actor"
)

// MaxStages is how many actors the stages of a PipelineBuilder have together,
// each member of a hub counted.
const MaxStages = 1000

// Build asks a PipelineBuilder for the actor.Props of the pipeline.
type Build struct{}

// PipelineBuilder returns the props of an actor that builds a Pipeline out of
// messages: each Stage that comes is added behind those before, and Build is
// answered with the actor.Props, or with an error as that of Pipeline. Then the
// builder stops; so there is one for each pipeline, which its user spawns where
// it should live.
//
// An ask of a Stage is answered with nil, or with the error that Build would have.
func PipelineBuilder(cfg PipelineConfig) actor.Props {
	return actor.PropsOf(func() actor.Actor { return &pipelineBuilder{cfg: cfg} })
}

type pipelineBuilder struct {
	cfg    PipelineConfig
	stages []Stage
	actors int   // of these
	err    error // of a stage that was told
}

func (b *pipelineBuilder) Receive(ctx *actor.Context, msg any) error {
	switch m := msg.(type) {
	case Stage:
		err := b.add(m)
		switch {
		case ctx.Message().Reply == nil:
			if b.err == nil {
				b.err = err
			}
		case err != nil:
			ctx.Fail(err)
		default:
			ctx.Respond(nil)
		}
	case Build:
		props, err := Pipeline(b.cfg, b.stages...)
		if b.err != nil {
			err = b.err
		}
		switch {
		case err == nil:
			ctx.Respond(props)
		case ctx.Message().Reply != nil:
			ctx.Fail(err)
		default:
			ctx.Respond(err)
		}
		ctx.StopSelf()
	default:
		refuse(ctx.Self(), take(ctx), fmt.Errorf("%w: a PipelineBuilder takes Stage and Build, not %T", actor.ErrInvalid, msg))
	}
	return nil
}

// add adds a stage that can be in a pipeline with those before.
func (b *pipelineBuilder) add(s Stage) error {
	n := len(s.actors())
	if b.actors+n > MaxStages {
		return fmt.Errorf("pipeline: %w: more than %d actors in its stages", actor.ErrInvalid, MaxStages)
	}
	stages := slices.Concat(b.stages, []Stage{s})
	if _, err := layout(stages); err != nil {
		return err
	}
	b.stages, b.actors = stages, b.actors+n
	return nil
}
