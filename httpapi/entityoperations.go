package httpapi

import (
	"net/http"
	"reflect"

	"github.com/twinsrv/twinsrv/entity"
)

func entityOperations() []operation {
	return []operation{
		{
			method: http.MethodGet, path: entityRoute, id: "get-entity", summary: "An entity: its state, life and revision", handle: getEntity,
			conditional: true, query: readQuery(), codes: readCodes(CodeNoSuchRevision, CodeRevisionDropped),
			answers: []answerDoc{{status: http.StatusOK, description: "The entity as it is acknowledged.", shape: reflect.TypeFor[Envelope](), headers: tagged()}, notModified()},
		},
		{
			method: http.MethodDelete, path: entityRoute, id: "delete-entity", summary: "End an entity's life, durably", handle: deleteEntity,
			description: "A deletion waits a while for the messages that the entity sent to be delivered, and is refused as busy if they are not; discard=true gives them up.",
			conditional: true, query: []string{"discard", "condition", "timeout"}, codes: writeCodes(CodeBadFilter, CodeTooCostly),
			answers: []answerDoc{{status: http.StatusNoContent, description: "It is gone."}},
		},
		{
			method: http.MethodPost, path: entityRoute + "/rebuild", id: "rebuild-entity", summary: "Make an event-sourced entity again from its events", handle: rebuildEntity,
			description: "Reads all events of the entity, without its snapshot, and saves a new snapshot, durably. Entities of other types have no such events, and it is rejected.",
			query:       []string{"timeout"},
			answers:     []answerDoc{{status: http.StatusOK, description: "It was rebuilt; this is its revision.", shape: reflect.TypeFor[entity.Ack](), headers: tagged()}},
			codes:       writeCodes(CodeRejected),
		},
	}
}

// readCodes are those of requests that read one entity.
func readCodes(more ...Code) []Code {
	return append([]Code{
		CodeBadName, CodeBadCondition, CodeBadQuery, CodeBadPreference, CodeNoSuchPod, CodeNoSuchEntity,
		CodePodReadOnly, CodeStaleRevision, CodeConditionFailed, CodeStoreUnavailable, CodeQuarantined,
	}, more...)
}

// readQuery are the parameters of requests that read one entity.
func readQuery() []string { return []string{"revision", "at", "timeout"} }

func notModified() answerDoc {
	return answerDoc{status: http.StatusNotModified, description: "If-None-Match names the present revision.", headers: []string{"ETag"}}
}

func tagged() []string { return []string{"ETag"} }
