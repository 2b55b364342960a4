package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/snapshot"
)

const (
	jsonType  = "application/json"
	patchType = "application/merge-patch+json"

	jsonPatchType = "application/json-patch+json"
	linesType     = "application/x-ndjson"
	eventsType    = "text/event-stream"
	bytesType     = "application/octet-stream"
)

// body reads a request's body, which must be of one of the media types. A
// request without a body needs no type.
func (c *call) body(types ...string) ([]byte, error) { return c.bodyUpTo(c.api.cfg.MaxBody, types...) }

// bodyUpTo is body with a limit of its own.
func (c *call) bodyUpTo(limit int64, types ...string) ([]byte, error) {
	if err := c.bodyOf(types...); err != nil {
		return nil, err
	}
	if c.r.ContentLength > limit {
		return nil, &http.MaxBytesError{Limit: limit}
	}
	data, err := c.readBody(limit)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, large
	case err != nil:
		return nil, refuse(CodeMalformed, "the body could not be read to its end")
	case len(data) > 0 && c.r.Header.Get("Content-Type") == "":
		return nil, c.unsupported(types)
	}
	c.empty = len(bytes.TrimSpace(data)) == 0
	return data, nil
}

// smallBody is how many bytes are reserved for a body on its sender's word.
const smallBody = 4 << 10

func (c *call) readBody(limit int64) ([]byte, error) {
	if n := c.r.ContentLength; n >= 0 && n <= smallBody {
		data := make([]byte, n)
		_, err := io.ReadFull(c.r.Body, data)
		return data, err
	}
	return io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, limit))
}

func (c *call) unsupported(types []string) error {
	is := "has no type"
	if t := c.r.Header.Get("Content-Type"); t != "" {
		is = fmt.Sprintf("is of the type %q", t)
	}
	return &failure{
		code: CodeUnsupportedMedia, detail: fmt.Sprintf("the body %s; send it with the header Content-Type: %s", is, strings.Join(types, " or ")),
		header: [2]string{"Accept", strings.Join(types, ", ")},
	}
}

// bodyOf refuses a body of another media type, one that is compressed, and one in
// another charset than UTF-8, which JSON is always in.
func (c *call) bodyOf(types ...string) error {
	if header := c.r.Header.Get("Content-Type"); header != "" && !slices.Contains(types, header) {
		t, parameters, err := mime.ParseMediaType(header)
		if err != nil || !slices.Contains(types, t) {
			return c.unsupported(types)
		}
		if charset, is := parameters["charset"]; is && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "us-ascii") {
			return refuse(CodeUnsupportedMedia, fmt.Sprintf("the body is in the charset %q; send it in UTF-8", charset))
		}
	}
	if e := c.r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return refuse(CodeUnsupportedMedia, "the body must be sent without a Content-Encoding")
	}
	return nil
}

// mediaType is that of the request's body, without its parameters.
func (c *call) mediaType() string {
	t, _, _ := mime.ParseMediaType(c.r.Header.Get("Content-Type")) // body has refused what cannot be parsed
	return t
}

// decode reads a JSON object into a struct, strictly. A state or a message that is
// a member of it may nest as deep as one that is a body of its own.
func (a *API) decode(data []byte, into any) error {
	tree, invalid := snapshot.ParseJSONAround(data, 1)
	err := invalid
	if err == nil {
		err = a.strict.DecodeParsed(data, tree, into)
	}
	var unknown *snapshot.UnknownFieldError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unknown):
		return fmt.Errorf("%w: %s", entity.ErrUnknownField, unknown.Path)
	}
	if invalid == nil { // it is of another shape, which is said in JSON's words
		s := shapeOf(reflect.TypeOf(into).Elem(), make(map[reflect.Type]*jsonShape))
		if at, what := s.misfit(tree, ""); what != "" {
			return fmt.Errorf("%w: %s %s", entity.ErrMalformed, place(at), what)
		}
	}
	return fmt.Errorf("%w: %w", entity.ErrMalformed, err)
}
