package httpapi

import (
	"net/http"
	"reflect"

	"github.com/twinsrv/twinsrv/entity"
)

func stateOperations() []operation {
	ack := reflect.TypeFor[entity.Ack]()
	return []operation{
		{
			method: http.MethodGet, path: stateRoute, id: "get-state", summary: "An entity's state alone", handle: getState,
			conditional: true, query: readQuery(), codes: readCodes(CodeNoSuchRevision, CodeRevisionDropped),
			answers: []answerDoc{{status: http.StatusOK, description: "The state as it is acknowledged.", anyJSON: true, headers: tagged()}, notModified()},
		},
		{
			method: http.MethodPut, path: stateRoute, id: "put-state", summary: "Create a document or replace its state", handle: putState,
			conditional: true, identified: true, query: []string{"condition", "timeout"},
			body: &bodyDoc{types: []string{jsonType}, description: "The state: a JSON object."},
			answers: []answerDoc{
				{status: http.StatusOK, description: "It was replaced, or had this state already and keeps its revision.", shape: ack, headers: tagged()},
				{status: http.StatusCreated, description: "It was created.", shape: ack, headers: []string{"ETag", "Location"}},
			},
			codes: messageCodes(CodeTypedState),
		},
		{
			method: http.MethodPatch, path: stateRoute, id: "patch-state", summary: "Change a document's state", handle: patchState,
			description: "Applies a JSON merge patch (RFC 7396) or a JSON patch (RFC 6902) to a document that exists, whole or not at all. " +
				"A JSON patch one of whose operations fails, a test among them, is rejected.",
			conditional: true, identified: true, query: []string{"condition", "timeout"},
			body:    &bodyDoc{types: []string{patchType, jsonPatchType, jsonType}, description: "The patch: a JSON object or, of the type application/json-patch+json, an array of operations. application/json is a merge patch."},
			answers: []answerDoc{{status: http.StatusOK, description: "It was patched; a patch that changes nothing keeps the revision.", shape: ack, headers: tagged()}},
			codes:   messageCodes(CodeTypedState),
		},
	}
}

// valueOperations are those on a part of a state, at a JSON pointer.
func valueOperations() []operation {
	ack := reflect.TypeFor[entity.Ack]()
	write := []string{"condition", "timeout"}
	return []operation{
		{
			method: http.MethodGet, path: valueRoute, id: "get-value", summary: "A part of an entity's state", handle: getValue,
			description: "The ETag is the entity's.",
			conditional: true, query: readQuery(), codes: readCodes(CodeBadPointer, CodeNoSuchValue, CodeNoSuchRevision, CodeRevisionDropped),
			answers: []answerDoc{{status: http.StatusOK, description: "What stands at the pointer, as it is acknowledged.", anyJSON: true, headers: tagged()}, notModified()},
		},
		{
			method: http.MethodPut, path: valueRoute, id: "put-value", summary: "Set a part of a document's state", handle: putValue,
			description: "Sets the value at the pointer as the message set does: it makes the objects on the way, replaces at an index of an array, appends at -, and creates a document where set may.",
			conditional: true, identified: true, query: write,
			body: &bodyDoc{types: []string{jsonType}, description: "The value: any JSON."},
			answers: []answerDoc{
				{status: http.StatusOK, description: "The value is set; one that was there already keeps the revision.", shape: ack, headers: tagged()},
				{status: http.StatusCreated, description: "The document was created.", shape: ack, headers: []string{"ETag", "Location"}},
			},
			codes: messageCodes(CodeTypedState, CodeBadPointer),
		},
		{
			method: http.MethodPatch, path: valueRoute, id: "patch-value", summary: "Change a part of a document's state", handle: patchValue,
			description: "Applies a JSON merge patch (RFC 7396) to the value at the pointer, which must be there.",
			conditional: true, identified: true, query: write,
			body:    &bodyDoc{types: []string{patchType, jsonType}, description: "The patch: any JSON."},
			answers: []answerDoc{{status: http.StatusOK, description: "It was patched; a patch that changes nothing keeps the revision.", shape: ack, headers: tagged()}},
			codes:   messageCodes(CodeTypedState, CodeBadPointer, CodeNoSuchValue),
		},
		{
			method: http.MethodDelete, path: valueRoute, id: "delete-value", summary: "Remove a part of a document's state", handle: deleteValue,
			description: "Removes the value at the pointer; the entity stays.",
			conditional: true, identified: true, query: write,
			answers: []answerDoc{{status: http.StatusNoContent, description: "It was removed; the ETag is the entity's now.", headers: tagged()}},
			codes:   messageCodes(CodeTypedState, CodeBadPointer, CodeNoSuchValue),
		},
	}
}
