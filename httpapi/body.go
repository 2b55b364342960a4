package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/snapshot"
)

const (
	jsonType  = "application/json"
	patchType = "application/merge-patch+json"
)

// body reads a request's body, which must be of one of the media types. A
// request without a body needs no type.
func (c *call) body(types ...string) ([]byte, error) {
	header := c.r.Header.Get("Content-Type")
	unsupported := &failure{
		code: CodeUnsupportedMedia, detail: fmt.Sprintf("the body is of the type %q; send %s", header, strings.Join(types, " or ")),
		header: [2]string{"Accept", strings.Join(types, ", ")},
	}
	if header != "" {
		if t, _, err := mime.ParseMediaType(header); err != nil || !slices.Contains(types, t) {
			return nil, unsupported
		}
	}
	if e := c.r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return nil, refuse(CodeUnsupportedMedia, "the body must be sent without a Content-Encoding")
	}
	limit := c.api.cfg.MaxBody
	if c.r.ContentLength > limit {
		return nil, &http.MaxBytesError{Limit: limit}
	}
	data, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, limit))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, large
	case err != nil:
		return nil, refuse(CodeMalformed, "the body could not be read to its end")
	case header == "" && len(data) > 0:
		return nil, unsupported
	}
	return data, nil
}

// decode reads a JSON object into a struct, strictly: no unknown field, no key
// twice, nothing behind it.
func decode(data []byte, into any) error {
	text, err := snapshot.CanonicalJSON(data)
	if err != nil {
		return fmt.Errorf("%w: %w", entity.ErrMalformed, err)
	}
	if text[0] != '{' {
		return fmt.Errorf("%w: an object is needed", entity.ErrMalformed)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err = d.Decode(into)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return fmt.Errorf("%w: field %q: a JSON %s is not a %s", entity.ErrMalformed, wrong.Field, wrong.Value, wrong.Type)
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return fmt.Errorf("%w: %s", entity.ErrUnknownField, strings.TrimPrefix(err.Error(), "json: unknown field "))
	default:
		return fmt.Errorf("%w: %w", entity.ErrMalformed, err)
	}
}
