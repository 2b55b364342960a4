package httpapi

import (
	"embed"
	"io/fs"

	"github.com/twinsrv/twinsrv/httpapi/webpage"
)

// reference is the page that shows the document to people, and its script.
//
//go:embed reference
var reference embed.FS

func referencePage() *webpage.Page {
	folder, err := fs.Sub(reference, "reference")
	if err != nil {
		panic(err) // the name is a valid one
	}
	return webpage.New(folder)
}

func getReference(c *call) error { return c.referenceFile("index.html") }

func getReferenceScript(c *call) error { return c.referenceFile("reference.js") }

func getReferenceStyle(c *call) error { return c.referenceFile("reference.css") }

func (c *call) referenceFile(name string) error {
	if !c.api.reference.Serve(c.w, c.r, name) {
		return refuse(CodeNotFound, "the reference has no such file")
	}
	return nil
}
