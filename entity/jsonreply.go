package entity

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/twinsrv/twinsrv/snapshot"
)

// JSONReply is what a handler's reply comes as to who asked for it with
// Message.JSON.
type JSONReply struct {
	// Tag is the revision behind the turn. It is zero if there is no entity.
	Tag ETag
	// Body is the reply. It is the asker's.
	Body json.RawMessage
}

// jsonReply is a reply as JSON, written in the handler's turn.
type jsonReply struct {
	v    any // the reply itself, for who remembers it in the turn
	body json.RawMessage
}

// asJSON writes a reply as JSON. The types' own code may panic.
func asJSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("its reply cannot be written as JSON: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// remembered makes a reply that was given before what the message asks for.
func (r encodedReply) remembered(c snapshot.Codec, m *Message) (v any, err error) {
	if v, err = r.value(c); err != nil || !m.JSON {
		return v, err
	}
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, panicked(p)
		}
	}()
	body, err := asJSON(v)
	return jsonReply{body: body}, err
}
