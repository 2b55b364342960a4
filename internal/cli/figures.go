package cli

import (
	"context"
	"time"

	"github.com/twinsrv/twinsrv/client"
)

// figures are what a server does, of its metrics.
type figures struct {
	Active           int     `json:"active"`   // entities in memory
	Waiting          int     `json:"waiting"`  // requests that wait for entities
	Mailbox          int     `json:"mailbox"`  // messages that wait in all mailboxes
	Queued           int     `json:"queued"`   // changes that wait for a commit
	Watchers         int     `json:"watchers"` // this one included
	DeadLetters      int     `json:"deadLetters"`
	AsksPerSecond    float64 `json:"asksPerSecond"`
	CommitsPerSecond float64 `json:"commitsPerSecond"`
	CommitMillis     float64 `json:"commitMillis"` // how long one took
	StoreUp          bool    `json:"storeUp"`

	read                   time.Time
	asks, commits, inStore float64
}

func readFigures(ctx context.Context, s *Session) (f figures, err error) {
	if s.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.timeout)
		defer cancel()
	}
	all, err := s.Metrics(ctx)
	if err != nil {
		return f, err
	}
	f.read = time.Now()
	for _, m := range all {
		f.note(m)
	}
	return f, nil
}

func (f *figures) note(m client.Figure) {
	switch m.Name {
	case "twinsrv_entities":
		if m.Labels["state"] == "active" {
			f.Active = int(m.Value)
		}
	case "twinsrv_asks_waiting":
		f.Waiting = int(m.Value)
	case "twinsrv_mailbox_messages":
		f.Mailbox = int(m.Value)
	case "twinsrv_commit_units_queued":
		f.Queued = int(m.Value)
	case "twinsrv_watchers":
		f.Watchers = int(m.Value)
	case "twinsrv_dead_letters_total":
		f.DeadLetters = int(m.Value)
	case "twinsrv_store_up":
		f.StoreUp = m.Value == 1
	case "twinsrv_asks_total":
		f.asks += m.Value
	case "twinsrv_commit_duration_seconds_count":
		f.commits = m.Value
	case "twinsrv_commit_duration_seconds_sum":
		f.inStore = m.Value
	}
}

// since adds how much there was since earlier figures. A server that was started
// meanwhile counts from 0 again.
func (f figures) since(before figures) figures {
	if f.asks < before.asks || f.commits < before.commits {
		before.asks, before.commits, before.inStore = 0, 0, 0
	}
	seconds := f.read.Sub(before.read).Seconds()
	if seconds <= 0 {
		return f
	}
	commits := f.commits - before.commits
	f.AsksPerSecond, f.CommitsPerSecond = round((f.asks-before.asks)/seconds), round(commits/seconds)
	if commits > 0 {
		f.CommitMillis = round((f.inStore - before.inStore) / commits * 1000)
	}
	return f
}
