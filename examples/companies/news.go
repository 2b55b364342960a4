package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/patterns"
	"github.com/twinsrv/twinsrv/entity"
)

// The messages on their way through the pipeline.
type (
	// line is a headline as it comes in. Its id is never another one's.
	line struct {
		id   string
		text string
	}
	// words is a headline that was read.
	words struct {
		line
		words []string
	}
	// mentions is a headline whose companies were found.
	mentions struct {
		words
		symbols []string
	}
	// scored is a headline with its score.
	scored struct {
		mentions
		score int
	}
	// delivered says that the companies of a headline have it, durably.
	delivered struct{ companies int }
)

// newsroom returns the pipeline that headlines go through: they are read,
// companies are found in them, they get a score, and the companies are told. What
// comes out is a delivered; before that, the headline has had its effect.
func newsroom(f *finder, to func(symbol string) entity.Ref) (actor.Props, error) {
	return patterns.Pipeline(patterns.PipelineConfig{},
		patterns.Stage{Name: "read", Props: stage(func(l line) (any, error) { return read(l) })},
		patterns.Stage{Name: "find", Props: stage(func(w words) (any, error) { return mentions{w, f.find(w.words)}, nil })},
		patterns.Stage{Name: "score", Props: stage(func(m mentions) (any, error) { return scored{m, score(m.words.words)}, nil })},
		patterns.Stage{Name: "deliver", Props: actor.PropsFunc(func(c *actor.Context, msg any) error { return deliver(c, msg, to) })},
	)
}

// stage returns an actor that answers messages of one type.
func stage[M any](f func(m M) (any, error)) actor.Props {
	return actor.PropsFunc(func(c *actor.Context, msg any) error {
		m, ok := msg.(M)
		if !ok {
			return fmt.Errorf("a %T is no %T", msg, m)
		}
		answer, err := f(m)
		if err == nil {
			c.Respond(answer)
		}
		return err
	})
}

var errEmpty = errors.New("the headline is empty")

func read(l line) (words, error) {
	l.text = strings.Join(strings.Fields(l.text), " ")
	w := wordsOf(l.text)
	if len(w) == 0 {
		return words{}, errEmpty
	}
	return words{l, w}, nil
}

// deliver tells the companies of a headline, and answers once all have it.
func deliver(c *actor.Context, msg any, to func(symbol string) entity.Ref) error {
	s, ok := msg.(scored)
	if !ok {
		return fmt.Errorf("a %T is no %T", msg, s)
	}
	told := &telling{left: len(s.symbols), of: len(s.symbols), answer: c.Defer()}
	if told.left == 0 {
		told.answer.Complete(delivered{})
	}
	for _, symbol := range s.symbols {
		reply := c.System().OnReply(func(_ any, err error) { told.answered(symbol, err) })
		m := entity.WithID(s.id, Mentioned{Headline: s.text, Score: s.score})
		if err := to(symbol).Post(actor.Message{Payload: m, Reply: reply}); err != nil {
			reply.Fail(err)
		}
	}
	return nil
}
