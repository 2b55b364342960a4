package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/twinsrv/twinsrv/internal/cli"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/bolt"
	"github.com/twinsrv/twinsrv/persist/jsonfile"
)

type storeBackup struct {
	File   string `arg:"" help:"The file to write. It appears when the backup is whole and on disk."`
	Server string `placeholder:"URL" help:"Back up this running server, such as ${server}, in place of a store that no server has open."`
	Force  bool   `help:"Replace FILE if it exists."`
	Token  string `name:"token-file" env:"TWINSRV_TOKEN_FILE" placeholder:"FILE" help:"A file with the token that the server wants; TWINSRV_TOKEN may hold it in place of that."`
	storeFlags
}

// Help says more than the list of flags.
func (storeBackup) Help() string {
	return "A backup holds everything that was acknowledged before it began, as of one moment. A running server works on meanwhile. " +
		"The backup is read once more when it is there: what cannot be read of it is listed, and the command ends with 8. " +
		"Stores in PostgreSQL are backed up by pg_dump.\n\n" +
		cli.Examples(
			"twinsrv store backup twins.backup --server http://127.0.0.1:8080",
			"twinsrv store backup twins.backup --data ./twinsrv-data    # no server runs on it",
		)
}

// Run writes the backup.
func (c *storeBackup) Run(ctx context.Context, given flags) error {
	if given["server"] && (given["store"] || given["data"]) {
		return cli.Usagef("a backup is of a running server (--server) or of a store that none has open (--store, --data): give one of them")
	}
	if err := cli.Refuse(c.File, c.Force); err != nil {
		return err
	}
	write, from, err := c.source(ctx, given)
	if err != nil {
		return err
	}
	size, err := cli.SaveFile(c.File, c.Force, write)
	if err != nil {
		return fmt.Errorf("back up %s into %s: %w", from, c.File, err)
	}
	fmt.Printf("%s holds a backup of %s (%s)\n", c.File, from, bytesText(size))
	u, err := backupUnreadable(ctx, c.File)
	if err != nil {
		return fmt.Errorf("%s was written, and cannot be read back; keep an older backup: %w", c.File, err)
	}
	return tellUnreadable(os.Stdout, "the backup "+c.File, &u)
}

// source returns what writes the backup, and of what it is one.
func (c *storeBackup) source(ctx context.Context, given flags) (write func(io.Writer) error, from string, err error) {
	if given["server"] {
		at := cli.ServerFlags{Server: c.Server, TokenFile: c.Token}
		server, err := at.Connect()
		if err != nil {
			return nil, "", err
		}
		return func(w io.Writer) error { return backupServer(ctx, server, w) }, server.Shown(), nil
	}
	t, err := c.target(given)
	if err != nil {
		return nil, "", err
	}
	if t.kind == kindPostgres {
		return nil, "", cli.Usagef("a store in PostgreSQL is backed up by PostgreSQL's own means, such as: pg_dump --format=custom --file=%s --dbname=URL", c.File)
	}
	return func(w io.Writer) error { return t.backup(ctx, w, filepath.Dir(c.File)) }, t.String(), nil
}

// backup writes a backup of a store that no server has open. Where the store's
// own disk has no room for that, it takes some in another folder.
func (t target) backup(ctx context.Context, w io.Writer, other string) error {
	store, err := t.openExisting(ctx, commandLog())
	if errors.Is(err, ErrInUse) {
		return fmt.Errorf("%w, or back up the running server with --server URL", err)
	}
	if err != nil {
		return err
	}
	sent := &countingWriter{w: w}
	err = withStore(store, func() error {
		b, ok := store.(persist.Backuper)
		if !ok {
			return cli.Usagef("%s cannot write itself out", t)
		}
		return b.Backup(ctx, sent)
	})
	if err == nil || sent.n > 0 || t.kind != kindBolt || ctx.Err() != nil {
		return err
	}
	commandLog().Warn("the store could not be backed up where it is; a copy of it is made beside the backup", "folder", other, "error", err)
	if err := t.backupCopy(ctx, w, other); err != nil {
		return fmt.Errorf("by way of a copy in %s: %w", other, err)
	}
	return nil
}

// countingWriter knows how much was written.
type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// stalled is how long a running server may send nothing once it has begun to
// send. Until then it may be busy with copying its file.
const stalled = 2 * time.Minute

// backupServer has a running server write its backup.
func backupServer(ctx context.Context, server *cli.Session, w io.Writer) error {
	defer server.Close()
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(stalled, func() { cancel(fmt.Errorf("%s has sent nothing for %v", server.Shown(), stalled)) })
	watch.Stop() // until it has begun to send
	defer watch.Stop()
	n, err := server.Backup(inner, &movingWriter{w: w, watch: watch})
	switch {
	case err != nil && ctx.Err() == nil && inner.Err() != nil:
		return context.Cause(inner)
	case err != nil && ctx.Err() == nil && n > 0:
		return fmt.Errorf("the backup broke off, so it is not whole (the server's log may say why); try again: %w", err)
	}
	return server.Explain(ctx, err)
}

// movingWriter winds a watch up with every byte that comes.
type movingWriter struct {
	w     io.Writer
	watch *time.Timer
}

func (m *movingWriter) Write(b []byte) (int, error) {
	m.watch.Reset(stalled)
	return m.w.Write(b)
}

type storeRestore struct {
	File string `arg:"" type:"existingfile" help:"A file that twinsrv store backup, or POST /v1/store/backup, has written."`
	storeFlags
}

// Help says more than the list of flags.
func (storeRestore) Help() string {
	return "The store must not exist: a backup replaces nothing. It is of the kind that was backed up; `twinsrv store copy` makes another kind of it. " +
		"What cannot be read of the store is listed, and the command ends with 8. " +
		"Backups of PostgreSQL are restored by pg_restore.\n\n" +
		cli.Examples(
			"twinsrv store restore twins.backup --data ./twinsrv-data",
			"twinsrv store restore twins.backup --store json:./twins",
		)
}

// Run makes the store.
func (c *storeRestore) Run(ctx context.Context, given flags) error {
	t, err := c.target(given)
	if err != nil {
		return err
	}
	switch t.kind {
	case kindPostgres:
		return cli.Usagef("a store in PostgreSQL is restored by PostgreSQL's own means, such as: pg_restore --dbname=URL %s", c.File)
	case kindMemory:
		return cli.Usagef("a store in memory ends with its server: restore into bolt:DIR or json:DIR")
	}
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := t.restore(f); err != nil {
		return fmt.Errorf("restore %s: %w", c.File, err)
	}
	fmt.Printf("%s has what %s held\n", t, c.File)
	u, err := unreadableIn(ctx, t.openFile)
	if err != nil {
		return fmt.Errorf("%s was restored, and cannot be read: %w", t, err)
	}
	return tellUnreadable(os.Stdout, "the store "+t.String(), &u)
}

// restore makes the store of a backup.
func (t target) restore(f *os.File) error {
	if err := t.onlyKind(); err != nil {
		return err
	}
	switch kind := kindOfBackup(f); {
	case kind == "":
		return cli.Usagef("it is no backup of twinsrv")
	case kind != t.kind:
		return cli.Usagef("it is a backup of a store of the kind %s: restore it into %s:DIR, and then `twinsrv store copy %s:DIR %s`", kind, kind, kind, t)
	}
	if t.kind == kindJSON {
		parent := filepath.Dir(filepath.Clean(t.at))
		if err := os.MkdirAll(parent, 0o700); err != nil {
			return err
		}
		return jsonfile.Restore(t.at, f)
	}
	if err := os.MkdirAll(t.at, 0o700); err != nil {
		return err
	}
	has, err := t.hasLog()
	if err != nil {
		return err
	}
	if has {
		return fmt.Errorf("%s is the commit log of a store that is or was there: move it and %s away together, or restore into another folder",
			t.logPath(), t.boltPath())
	}
	err = bolt.Restore(t.boltPath(), f)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is a store already: move %s away, or restore into another folder", t, t.boltPath())
	}
	return err
}

// kindOfBackup tells the kinds apart by how their files begin; "" for another
// file. What is wrong with one of the right kind its store finds out.
func kindOfBackup(f io.ReaderAt) string {
	head := make([]byte, 512)
	n, _ := f.ReadAt(head, 0)
	head = head[:n]
	switch {
	case n > 262 && bytes.Equal(head[257:262], []byte("ustar")):
		return kindJSON
	case n > 20 && (bytes.Equal(head[16:20], []byte{0xED, 0xDA, 0x0C, 0xED}) || bytes.Equal(head[16:20], []byte{0xED, 0x0C, 0xDA, 0xED})):
		return kindBolt
	}
	return ""
}
