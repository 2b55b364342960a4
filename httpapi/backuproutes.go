package httpapi

import (
	"net/http"
	"time"

	"github.com/twinsrv/twinsrv/persist"
)

const (
	// backupPart is how much of a backup is sent at a time ...
	backupPart = 64 << 10
	// ... and backupPatience how long a client may take to receive it.
	backupPatience = 30 * time.Second
)

// postBackup streams the store as of one moment. One backup is written at a
// time. The stores see to it that a slow client does not hold up commits; one
// that stands still is cut off.
func postBackup(c *call) error {
	store, ok := c.api.pods.Committer().Service().(persist.Backuper)
	if !ok {
		return refuse(CodeNoBackup, noBackup(c.api.cfg.Store))
	}
	if !c.api.backing.CompareAndSwap(false, true) {
		return refuse(CodeBusy, "another backup is being written; try again when it is done")
	}
	defer c.api.backing.Store(false)
	w := &backupWriter{call: c, control: http.NewResponseController(c.w)}
	err := store.Backup(c.r.Context(), w)
	switch {
	case err == nil:
		w.begin()
		return nil
	case w.begun:
		c.api.log.WarnContext(c.r.Context(), "a backup was cut off", "error", err)
		panic(http.ErrAbortHandler) // so that the client sees no end
	default:
		return err
	}
}

// noBackup says what to do instead.
func noBackup(store string) string {
	switch store {
	case "postgres":
		return "a store in PostgreSQL is backed up by PostgreSQL's own means, such as pg_dump"
	case "memory":
		return "a store in memory has nothing that outlives the server"
	}
	return "the store of this server cannot write itself out; back it up by its own means"
}

// backupWriter sends a backup in parts, each within its time. The server's own
// timeout for an answer is that of short requests.
type backupWriter struct {
	call    *call
	control *http.ResponseController
	begun   bool
}

// begin sends the header, unless it is sent. Before that a failure can still be
// answered as one.
func (w *backupWriter) begin() {
	if w.begun {
		return
	}
	w.begun = true
	name := "twinsrv-" + time.Now().UTC().Format("20060102T150405Z")
	if store := w.call.api.cfg.Store; store != "" {
		name += "." + store
	}
	h := w.call.w.Header()
	h.Set("Content-Type", bytesType)
	h.Set("Content-Disposition", `attachment; filename="`+name+`.backup"`)
	h.Set("Cache-Control", "no-store")
	w.call.w.WriteHeader(http.StatusOK)
}

// Write implements io.Writer.
func (w *backupWriter) Write(b []byte) (n int, err error) {
	w.begin()
	for n < len(b) && err == nil {
		_ = w.control.SetWriteDeadline(time.Now().Add(w.call.api.patience)) // a recorder of a test has none
		part := b[n:min(n+backupPart, len(b))]
		var sent int
		sent, err = w.call.w.Write(part)
		n += sent
	}
	return n, err
}
