package httpapi

import "time"

// SetPatience is how long a client may take to receive a part of a stream.
func (a *API) SetPatience(d time.Duration) { a.patience = d }

// Watching is how many streams of events are open.
func (a *API) Watching() int { return a.watching.count() }
