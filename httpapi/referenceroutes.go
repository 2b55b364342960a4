package httpapi

import (
	"embed"
	"net/http"
	"strconv"
)

// reference is the page that shows the document to people, and its script.
//
//go:embed reference
var reference embed.FS

// referencePolicy lets the page load what this server gives, and nothing else.
const referencePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func getReference(c *call) error { return c.page1("index.html", "text/html; charset=utf-8") }

func getReferenceScript(c *call) error {
	return c.page1("reference.js", "text/javascript; charset=utf-8")
}

func getReferenceStyle(c *call) error { return c.page1("reference.css", "text/css; charset=utf-8") }

// page1 answers with one file of the page.
func (c *call) page1(file, media string) error {
	data, err := reference.ReadFile("reference/" + file)
	if err != nil {
		return err
	}
	h := c.w.Header()
	h.Set("Content-Type", media)
	h.Set("Content-Length", strconv.Itoa(len(data)))
	h.Set("Content-Security-Policy", referencePolicy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache")
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(data) // the client is gone if this fails
	return nil
}
