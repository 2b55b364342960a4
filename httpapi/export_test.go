package httpapi

import "time"

// SetPatience is how long a client may take to receive a part of a stream.
func (a *API) SetPatience(d time.Duration) { a.patience = d }

// SetImportWindow is how many bytes of memory the lines of an import may take that
// are on their way.
func (a *API) SetImportWindow(n int) { a.window = n }

// SetWatchFilters is how many bytes the filters of all watches may have.
func (a *API) SetWatchFilters(n int) { a.watching.mostBytes = n }

// WatchFilters is how many they have.
func (a *API) WatchFilters() int {
	a.watching.mu.Lock()
	defer a.watching.mu.Unlock()
	return a.watching.bytes
}

// Watching is how many streams of events are open.
func (a *API) Watching() int { return a.watching.count() }

// KeepFutures is how many futures there may be.
func (a *API) KeepFutures(n int) { a.futures.bound = n }

// KeptFutures is how many there are.
func (a *API) KeptFutures() int {
	kept, _ := a.futures.count()
	return kept
}

// PendingFutures is how many of them have not ended.
func (a *API) PendingFutures() int {
	_, pending := a.futures.count()
	return pending
}
