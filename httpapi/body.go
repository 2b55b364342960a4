package httpapi

import (
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

// decode reads a JSON object into a struct, strictly.
func (a *API) decode(data []byte, into any) error {
	err := a.strict.Decode(data, into)
	var unknown *snapshot.UnknownFieldError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unknown):
		return fmt.Errorf("%w: %s", entity.ErrUnknownField, unknown.Path)
	default:
		return fmt.Errorf("%w: %w", entity.ErrMalformed, err)
	}
}
