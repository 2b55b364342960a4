package httpapi

import "time"

// SetBackupPatience is how long a client may take to receive a part of a
// backup.
func (a *API) SetBackupPatience(d time.Duration) { a.patience = d }
