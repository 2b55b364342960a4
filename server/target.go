package server

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// ErrStore refuses what should say which store to use.
var ErrStore = errors.New("bad store")

// The kinds of store, as they begin a target.
const (
	kindBolt     = "bolt"
	kindJSON     = "json"
	kindPostgres = "postgres"
	kindMemory   = "memory"
)

// storeForms lists what a store may be named by.
const storeForms = "bolt:DIR (one file and its commit log in a folder), json:DIR (readable files in a folder), " +
	"postgres://USER:PASSWORD@HOST/DATABASE, or memory: (nothing is kept)"

// target names a store.
type target struct {
	kind string
	at   string // the folder, or the URL with its password

	asFound bool // take the files of a json store as they are found
}

// parseTarget reads a target such as bolt:DIR. Its errors wrap ErrStore and do
// not repeat passwords.
func parseTarget(text string) (target, error) {
	scheme, rest, found := strings.Cut(text, ":")
	switch {
	case !found:
		return target{}, fmt.Errorf("%w: %q does not say what kind of store it is: want %s", ErrStore, text, storeForms)
	case scheme == kindBolt || scheme == kindJSON:
		if rest == "" || strings.HasPrefix(rest, "//") {
			return target{}, fmt.Errorf("%w: %q names no folder: want %s", ErrStore, text, storeForms)
		}
		return target{kind: scheme, at: rest}, nil
	case scheme == "postgres" || scheme == "postgresql":
		return parsePostgres(text)
	case scheme == kindMemory:
		if rest != "" {
			return target{}, fmt.Errorf("%w: memory: is the whole name of the store in memory, which is nowhere; want %s", ErrStore, storeForms)
		}
		return target{kind: kindMemory}, nil
	}
	return target{}, fmt.Errorf("%w: there are no stores of the kind %q: want %s", ErrStore, scheme, storeForms)
}

// parsePostgres refuses URLs that cannot be shown without their password. Why
// they cannot is not said: the cause repeats what it did not understand.
func parsePostgres(text string) (target, error) {
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || !strings.Contains(text, "://") {
		return target{}, fmt.Errorf("%w: the URL of the PostgreSQL database cannot be read: want postgres://USER:PASSWORD@HOST/DATABASE, "+
			"with special characters percent-encoded (a slash in the password is %%2F)", ErrStore)
	}
	return target{kind: kindPostgres, at: text}, nil
}

// String returns the target without passwords.
func (t target) String() string {
	if t.kind != kindPostgres {
		return t.kind + ":" + t.at
	}
	u, err := url.Parse(t.at)
	if err != nil {
		return "postgres:"
	}
	q := u.Query()
	for name := range q {
		if strings.Contains(name, "password") {
			q.Set(name, "xxxxx")
		}
	}
	u.RawQuery = q.Encode()
	return u.Redacted()
}

// same reports whether both are one store, as far as their names tell.
func (t target) same(o target) bool {
	if t.kind == o.kind && t.files() {
		return filepath.Clean(t.at) == filepath.Clean(o.at)
	}
	return t == o
}

// files reports whether the store is a folder of its own.
func (t target) files() bool { return t.kind == kindBolt || t.kind == kindJSON }
