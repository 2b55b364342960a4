package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/twinsrv/twinsrv/entity"
)

// maxTokens is how many tokens a JSON pointer has at most. A state does not
// nest deeper.
const maxTokens = 1000

// pointerOf makes a JSON pointer of the escaped segments of a path. Each is
// decoded exactly once; a slash that was escaped in it is a slash of the token,
// as ~1 is.
func pointerOf(segments []string) (string, error) {
	if len(segments) > maxTokens {
		return "", refuse(CodeBadPointer, fmt.Sprintf("the pointer has %d tokens, and a state nests at most %d levels deep", len(segments), maxTokens))
	}
	var b strings.Builder
	for _, s := range segments {
		token, err := url.PathUnescape(s)
		switch {
		case err != nil:
			return "", refuse(CodeBadPointer, "the path is not percent-encoded correctly: "+err.Error())
		case !utf8.ValidString(token):
			return "", refuse(CodeBadPointer, fmt.Sprintf("the token %q is not valid UTF-8", token))
		}
		for i := range len(token) {
			if token[i] == '~' && (i+1 == len(token) || token[i+1] != '0' && token[i+1] != '1') {
				return "", refuse(CodeBadPointer, fmt.Sprintf("the token %q has a ~ that is neither ~0, which stands for ~, nor ~1, which stands for /", token))
			}
		}
		b.WriteByte('/')
		b.WriteString(strings.ReplaceAll(token, "/", "~1"))
	}
	return b.String(), nil
}

func noSuchValue(pointer string) error {
	return refuse(CodeNoSuchValue, fmt.Sprintf("nothing stands at %q in the entity's state", pointer))
}

func getValue(c *call) error {
	v, err := c.theView()
	if v == nil {
		return err
	}
	state, err := v.JSON()
	if err != nil {
		return err
	}
	return c.value(state, c.pointer)
}

// value answers with what stands at a pointer in a state.
func (c *call) value(state []byte, pointer string) error {
	found, err := entity.ValueAt(state, pointer)
	if errors.Is(err, entity.ErrNoValue) {
		return noSuchValue(pointer)
	}
	if err != nil {
		return err
	}
	return c.raw(http.StatusOK, found)
}

// putValue sets the value at a pointer, as the message "set" does.
func putValue(c *call) error {
	w, err := c.readWrite(jsonType)
	if err != nil {
		return err
	}
	m, err := w.spec.SetAt(c.pointer, w.body)
	if err != nil {
		return err
	}
	return c.sendAnswered(w, m)
}

// patchValue applies a merge patch to the value at a pointer, which must be
// there: the patch itself would make one.
func patchValue(c *call) error {
	w, err := c.readWrite(patchType, jsonType)
	if err != nil {
		return err
	}
	m, err := w.spec.MergeAt(c.pointer, w.body)
	if err != nil {
		return err
	}
	m.NoCreate = true
	w.cond.Where = &standing{pointer: c.pointer, and: w.cond.Where}
	return c.sendAnswered(w, m)
}

// deleteValue removes the value at a pointer, as the message "remove" does.
func deleteValue(c *call) error {
	w, err := c.readWrite(jsonType)
	if err != nil {
		return err
	}
	m, err := w.spec.RemoveAt(c.pointer)
	if err != nil {
		return err
	}
	m.NoCreate = true
	w.cond.Where = &standing{pointer: c.pointer, and: w.cond.Where}
	ack, err := c.send(w, m)
	if err != nil {
		return err
	}
	c.w.Header().Set("ETag", quoted(entity.ETag{Life: ack.Life, Revision: ack.Revision}))
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
