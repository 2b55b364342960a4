package webpage

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"time"
)

// Policy lets a page load and call what its own server gives, and nothing else:
// no script or style that stands in the page, no frame around it, and no text
// that is made a script.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// Page is a folder of files. It is immutable and safe for concurrent use.
type Page struct {
	files map[string]file
}

type file struct {
	data  []byte
	media string
	tag   string
}

// New reads the files of a folder, not those of folders in it. It panics when a
// file is of a type that pages are not made of, or cannot be read: the files are
// part of the program.
func New(folder fs.FS) *Page {
	names, err := fs.Glob(folder, "*.*")
	if err != nil {
		panic(err)
	}
	p := &Page{files: make(map[string]file, len(names))}
	for _, name := range names {
		data, err := fs.ReadFile(folder, name)
		if err != nil {
			panic(err)
		}
		media := mediaOf(name)
		if media == "" {
			panic(fmt.Errorf("the file %s of a page is of an unknown type", name))
		}
		sum := sha256.Sum256(data)
		p.files[name] = file{data: data, media: media, tag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
	}
	return p
}

// mediaOf is the media type of a file. The system's own table is not asked, since
// it says what it likes.
func mediaOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return ""
}

// Names lists the files by name.
func (p *Page) Names() []string {
	names := make([]string, 0, len(p.files))
	for name := range p.files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Serve answers a GET or HEAD with a file. It reports whether there is one of
// that name; if not, nothing is written.
func (p *Page) Serve(w http.ResponseWriter, r *http.Request, name string) bool {
	f, is := p.files[name]
	if !is {
		return false
	}
	h := w.Header()
	h.Set("Content-Type", f.media)
	h.Set("Content-Security-Policy", Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", f.tag)
	// No file is large, so that all of it comes or nothing: of what a request can
	// say of its copy only If-None-Match counts.
	plain := &http.Request{Method: r.Method, URL: r.URL, Header: http.Header{"If-None-Match": r.Header["If-None-Match"]}}
	http.ServeContent(w, plain, name, time.Time{}, bytes.NewReader(f.data))
	return true
}
