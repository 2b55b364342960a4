package client

import (
	"context"
	"net/http"
)

// Patch is a JSON patch (RFC 6902).
type Patch []Operation

// Operation is one operation of a Patch. Make one with Add, Remove, Replace,
// Move, Copy or Test.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from,omitempty"`
	Value *any   `json:"value,omitempty"` // nil: it has none
}

// Add puts a value at a JSON pointer, or into an array before the element there.
func Add(path string, value any) Operation { return Operation{Op: "add", Path: path, Value: &value} }

// Remove takes away what stands at a JSON pointer.
func Remove(path string) Operation { return Operation{Op: "remove", Path: path} }

// Replace puts a value in the place of another.
func Replace(path string, value any) Operation {
	return Operation{Op: "replace", Path: path, Value: &value}
}

// Move takes what stands at a JSON pointer to another.
func Move(from, path string) Operation { return Operation{Op: "move", From: from, Path: path} }

// Copy copies what stands at a JSON pointer to another.
func Copy(from, path string) Operation { return Operation{Op: "copy", From: from, Path: path} }

// Test has the whole patch rejected unless a value stands at a JSON pointer.
func Test(path string, value any) Operation { return Operation{Op: "test", Path: path, Value: &value} }

// Put makes a JSON object the whole state of a document, which is created if
// need be. A state that it has already keeps its revision.
func (e Entity) Put(ctx context.Context, state any) (Ack, error) { return e.PutAt(ctx, "", state) }

// PutAt puts a value at a JSON pointer in a document's state, making the objects
// on the way. In an array it replaces an element, or appends at "-".
func (e Entity) PutAt(ctx context.Context, pointer string, value any) (Ack, error) {
	return e.writeState(ctx, http.MethodPut, pointer, jsonType, value)
}

// Merge applies a JSON merge patch (RFC 7396) to a document that exists: members
// that are null are removed.
func (e Entity) Merge(ctx context.Context, patch any) (Ack, error) { return e.MergeAt(ctx, "", patch) }

// MergeAt applies a JSON merge patch to what stands at a JSON pointer. It fails
// with NoSuchValue when nothing does.
func (e Entity) MergeAt(ctx context.Context, pointer string, patch any) (Ack, error) {
	return e.writeState(ctx, http.MethodPatch, pointer, mergeType, patch)
}

// Patch applies a JSON patch to a document that exists, the whole of it or
// nothing. It fails with Rejected when an operation cannot be done or a test
// does not hold.
func (e Entity) Patch(ctx context.Context, patch ...Operation) (Ack, error) {
	return e.writeState(ctx, http.MethodPatch, "", jsonPatchType, Patch(patch))
}

// RemoveAt removes what stands at a JSON pointer in a document's state. It fails
// with NoSuchValue when nothing does.
func (e Entity) RemoveAt(ctx context.Context, pointer string) (Ack, error) {
	if pointer == "" {
		return Ack{}, &Error{Code: Rejected, Detail: "the whole state cannot be removed; delete the entity, or put {}"}
	}
	return e.writeState(ctx, http.MethodDelete, pointer, "", nil)
}

func (e Entity) writeState(ctx context.Context, method, pointer, bodyType string, body any) (Ack, error) {
	path, err := e.statePath(pointer)
	if err != nil {
		return Ack{}, err
	}
	r, err := e.write(ctx, method, path, bodyType, body)
	if err != nil {
		return Ack{}, err
	}
	return e.c.acknowledged(ctx, r)
}
