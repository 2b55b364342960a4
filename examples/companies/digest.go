package main

import (
	"time"

	"github.com/twinsrv/twinsrv/entity"
)

// Digest sums up what was said of a company since the digest before.
type Digest struct {
	Due       time.Time `json:"due"`
	Mentions  int       `json:"mentions"`  // since the digest before
	Through   int       `json:"through"`   // and since the first
	Sentiment float64   `json:"sentiment"` // the company's at the time
}

// Summarise is the message "summarise": make a digest, if there was a mention
// since the last one. A company has itself reminded of it.
type Summarise struct{}

// remind has a company summarise every so often from now on, whatever happens to
// the process. What is missed while it does not run is made up for once.
func remind(c *entity.Context, every time.Duration) {
	c.Remind("digest", entity.Reminder{Every: every, Message: Summarise{}, Missed: entity.MissedOnce})
}

func (s *Company) summarise(c *entity.Context) {
	due := c.Now()
	if o, reminded := c.Reminder(); reminded {
		due = o.Due
	}
	before := 0
	if s.Digest != nil {
		before = s.Digest.Through
	}
	if s.Mentions > before {
		s.Digests++
		s.Digest = &Digest{Due: due.UTC(), Mentions: s.Mentions - before, Through: s.Mentions, Sentiment: s.Sentiment}
	}
}
