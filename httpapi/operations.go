package httpapi

import (
	"net/http"
	"reflect"
	"slices"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/pod"
)

// operation is one route: what serves it, and what the OpenAPI document says
// of it.
type operation struct {
	method, path string
	id, summary  string
	description  string
	query        []string // names of parameters, which documenter knows
	conditional  bool     // takes If-Match and If-None-Match
	identified   bool     // takes Idempotency-Key
	body         *bodyDoc
	answers      []answerDoc
	codes        []Code // beside those of every operation
	handle       func(*call) error
}

// bodyDoc describes a request's body; a nil shape is any JSON value.
type bodyDoc struct {
	types       []string
	shape       reflect.Type
	description string
}

// answerDoc describes a successful answer; a nil shape has no body, unless
// anyJSON or bytes is set.
type answerDoc struct {
	status      int
	description string
	shape       reflect.Type
	anyJSON     bool
	bytes       bool
	headers     []string
}

const (
	podRoute    = "/v1/pods/{pod}"
	entityRoute = podRoute + "/entities/{name}"
	stateRoute  = entityRoute + "/state"

	quarantineRoute = "/v1/quarantine"
	unreadableRoute = quarantineRoute + "/{pod}/{name}"
)

const apiDescription = "Pods of entities (digital twins) that keep what they acknowledge. " +
	"Names stand in paths percent-encoded as one segment. Errors are problem+json with a stable code. " +
	"504 outcome_unknown alone leaves open whether a change was made."

// operations lists every route. OPTIONS and, beside each GET, HEAD are served
// as well.
func operations() []operation {
	return slices.Concat(serviceOperations(), quarantineOperations(), podOperations(), entityOperations())
}

func serviceOperations() []operation {
	return []operation{
		{
			method: http.MethodGet, path: "/healthz", id: "health", summary: "Whether the server serves", handle: getHealth,
			answers: []answerDoc{{status: http.StatusOK, description: "It does.", shape: reflect.TypeFor[Health]()}},
			codes:   []Code{CodeStoreUnavailable},
		},
		{
			method: http.MethodGet, path: "/openapi.json", id: "openapi", summary: "This document", handle: getOpenAPI,
			answers: []answerDoc{{status: http.StatusOK, description: "OpenAPI 3.1.", anyJSON: true}},
		},
		{
			method: http.MethodPost, path: "/v1/store/backup", id: "backup", summary: "A backup of the whole store", handle: postBackup,
			description: "Streams everything that was acknowledged before the request, as of one moment, while the server works on. " +
				"What comes is of the store's kind; `twinsrv store restore` makes a store of it. A backup is whole if the answer ends regularly.",
			answers: []answerDoc{{status: http.StatusOK, description: "The backup.", bytes: true, headers: []string{"Content-Disposition"}}},
			codes:   []Code{CodeNoBackup, CodeBusy, CodeStoreUnavailable},
		},
	}
}

func quarantineOperations() []operation {
	found := []Code{CodeBadName, CodeBadQuery, CodeNoSuchPod, CodeNoSuchEntity, CodeNotQuarantined}
	asked := []Code{
		CodePodReadOnly, CodeConflict, CodeStoreRefused, CodeMailboxFull, CodeStoreUnavailable,
		CodeQuarantined, CodeStopping, CodeOverloaded, CodeBusy, CodeOutcomeUnknown,
	}
	return []operation{
		{
			method: http.MethodGet, path: quarantineRoute, id: "list-quarantine", summary: "The entities that cannot be read", handle: listQuarantine,
			description: "Lists, by pod and name, the entities that were found to be unreadable. They are found out when they are read, listed or get a message. " +
				"A line without a name is of the pod's own definition: such a pod is read-only until it is declared again.",
			query:   []string{"limit", "cursor"},
			answers: []answerDoc{{status: http.StatusOK, description: "A page.", shape: reflect.TypeFor[QuarantineList]()}},
			codes:   []Code{CodeBadQuery},
		},
		{
			method: http.MethodGet, path: unreadableRoute, id: "show-quarantined", summary: "Why an entity cannot be read, and what is left of it", handle: showQuarantined,
			query:   []string{"timeout"},
			answers: []answerDoc{{status: http.StatusOK, description: "The reason and the record, as far as it can be read.", shape: reflect.TypeFor[QuarantinedEntity]()}},
			codes:   slices.Concat(found, asked),
		},
		{
			method: http.MethodPost, path: unreadableRoute + "/retry", id: "retry-quarantined", summary: "Read a quarantined entity again", handle: retryQuarantined,
			description: "Has the entity read again, an event-sourced one from its events. If that fails it stays quarantined, and the answer says why.",
			query:       []string{"timeout"},
			answers:     []answerDoc{{status: http.StatusOK, description: "The entity, which can be read.", shape: reflect.TypeFor[Envelope](), headers: []string{"ETag"}}},
			codes:       slices.Concat(found, asked),
		},
		{
			method: http.MethodDelete, path: unreadableRoute, id: "remove-quarantined", summary: "End the life of an entity that cannot be read, durably", handle: removeQuarantined,
			description: "An entity that can be read is left alone.",
			query:       []string{"timeout"},
			answers:     []answerDoc{{status: http.StatusNoContent, description: "It is gone."}},
			codes:       slices.Concat(found, asked),
		},
	}
}

// writeCodes are those of requests that an entity handles.
func writeCodes(more ...Code) []Code {
	return append([]Code{
		CodeBadName, CodeBadQuery, CodeBadCondition, CodeNoSuchPod, CodeNoSuchEntity,
		CodePodReadOnly, CodeConflict, CodeStaleRevision, CodeConditionFailed, CodeStoreRefused, CodeMailboxFull,
		CodeStoreUnavailable, CodeQuarantined, CodeStopping, CodeOverloaded, CodeBusy, CodeOutcomeUnknown,
	}, more...)
}

// messageCodes are those of requests whose body is for an entity.
func messageCodes(more ...Code) []Code {
	return writeCodes(append([]Code{
		CodeMalformed, CodeBadMessageID, CodeMessageIDReused, CodeBodyTooLarge, CodeUnsupportedMedia, CodeUnknownField, CodeRejected, CodeHandlerFailed,
	}, more...)...)
}

func podOperations() []operation {
	describedPod := reflect.TypeFor[PodDescription]()
	return []operation{
		{
			method: http.MethodGet, path: "/v1/pods", id: "list-pods", summary: "The pods by name", handle: listPods,
			query:   []string{"limit", "cursor"},
			answers: []answerDoc{{status: http.StatusOK, description: "A page.", shape: reflect.TypeFor[PodList]()}},
			codes:   []Code{CodeBadQuery},
		},
		{
			method: http.MethodPut, path: podRoute, id: "put-pod", summary: "Declare a document pod", handle: putPod,
			description: "Declares a pod of JSON documents, or changes the definition of one, durably. Pods of other types are part of a program.",
			query:       []string{"timeout"},
			body:        &bodyDoc{types: []string{jsonType}, shape: reflect.TypeFor[pod.Definition](), description: `Only "type" is needed: {"type":"document"}. "durability" is "sync", "async:" and an interval, or "volatile" for entities that end with the server.`},
			answers: []answerDoc{
				{status: http.StatusOK, description: "It was there, and has this definition now.", shape: describedPod},
				{status: http.StatusCreated, description: "It is new.", shape: describedPod, headers: []string{"Location"}},
			},
			codes: []Code{
				CodeMalformed, CodeBadName, CodeBadQuery, CodePodExists, CodeConflict, CodeBodyTooLarge, CodeUnsupportedMedia,
				CodeUnknownField, CodeBadDefinition, CodeStoreUnavailable, CodeStopping, CodeOutcomeUnknown,
			},
		},
		{
			method: http.MethodGet, path: podRoute, id: "get-pod", summary: "What a pod is", handle: getPod,
			answers: []answerDoc{{status: http.StatusOK, description: "The pod.", shape: describedPod}},
			codes:   []Code{CodeBadName, CodeNoSuchPod},
		},
		{
			method: http.MethodDelete, path: podRoute, id: "delete-pod", summary: "Delete a document pod", handle: deletePod,
			description: "Deletes a pod that has no entities, or with cascade=true the pod and its entities. It can be repeated when it fails half-way.",
			query:       []string{"cascade", "timeout"},
			answers:     []answerDoc{{status: http.StatusNoContent, description: "It is gone."}},
			codes: []Code{
				CodeBadName, CodeBadQuery, CodeNoSuchPod, CodePodNotEmpty, CodePodReadOnly, CodeConflict, CodeMailboxFull,
				CodeStoreUnavailable, CodeQuarantined, CodeStopping, CodeOutcomeUnknown,
			},
		},
		{
			method: http.MethodGet, path: podRoute + "/entities", id: "list-entities", summary: "A pod's entities by name", handle: listEntities,
			query:   []string{"limit", "cursor", "prefix", "timeout"},
			answers: []answerDoc{{status: http.StatusOK, description: "A page.", shape: reflect.TypeFor[EntityList]()}},
			codes:   []Code{CodeBadName, CodeBadQuery, CodeNoSuchPod, CodeStoreUnavailable},
		},
	}
}

func entityOperations() []operation {
	readCodes := []Code{CodeBadName, CodeBadCondition, CodeBadQuery, CodeNoSuchPod, CodeNoSuchEntity, CodeStaleRevision, CodeConditionFailed, CodeStoreUnavailable, CodeQuarantined}
	notModified := answerDoc{status: http.StatusNotModified, description: "If-None-Match names the present revision.", headers: []string{"ETag"}}
	ack, tagged := reflect.TypeFor[entity.Ack](), []string{"ETag"}
	return []operation{
		{
			method: http.MethodGet, path: entityRoute, id: "get-entity", summary: "An entity: its state, life and revision", handle: getEntity,
			conditional: true, query: []string{"timeout"}, codes: readCodes,
			answers: []answerDoc{{status: http.StatusOK, description: "The entity as it is acknowledged.", shape: reflect.TypeFor[Envelope](), headers: tagged}, notModified},
		},
		{
			method: http.MethodDelete, path: entityRoute, id: "delete-entity", summary: "End an entity's life, durably", handle: deleteEntity,
			description: "A deletion waits a while for the messages that the entity sent to be delivered, and is refused as busy if they are not; discard=true gives them up.",
			conditional: true, query: []string{"discard", "timeout"}, codes: writeCodes(),
			answers: []answerDoc{{status: http.StatusNoContent, description: "It is gone."}},
		},
		{
			method: http.MethodPost, path: entityRoute + "/rebuild", id: "rebuild-entity", summary: "Make an event-sourced entity again from its events", handle: rebuildEntity,
			description: "Reads all events of the entity, without its snapshot, and saves a new snapshot, durably. Entities of other types have no such events, and it is rejected.",
			query:       []string{"timeout"},
			answers:     []answerDoc{{status: http.StatusOK, description: "It was rebuilt; this is its revision.", shape: ack, headers: tagged}},
			codes:       writeCodes(CodeRejected),
		},
		{
			method: http.MethodGet, path: stateRoute, id: "get-state", summary: "An entity's state alone", handle: getState,
			conditional: true, query: []string{"timeout"}, codes: readCodes,
			answers: []answerDoc{{status: http.StatusOK, description: "The state as it is acknowledged.", anyJSON: true, headers: tagged}, notModified},
		},
		{
			method: http.MethodPut, path: stateRoute, id: "put-state", summary: "Create a document or replace its state", handle: putState,
			conditional: true, identified: true, query: []string{"timeout"},
			body: &bodyDoc{types: []string{jsonType}, description: "The state: a JSON object."},
			answers: []answerDoc{
				{status: http.StatusOK, description: "It was replaced, or had this state already and keeps its revision.", shape: ack, headers: tagged},
				{status: http.StatusCreated, description: "It was created.", shape: ack, headers: []string{"ETag", "Location"}},
			},
			codes: messageCodes(CodeTypedState),
		},
		{
			method: http.MethodPatch, path: stateRoute, id: "patch-state", summary: "Change a document's state", handle: patchState,
			description: "Applies a JSON merge patch (RFC 7396) to a document that exists.",
			conditional: true, identified: true, query: []string{"timeout"},
			body:    &bodyDoc{types: []string{patchType, jsonType}, description: "The patch: a JSON object."},
			answers: []answerDoc{{status: http.StatusOK, description: "It was patched; a patch that changes nothing keeps the revision.", shape: ack, headers: tagged}},
			codes:   messageCodes(CodeTypedState),
		},
		{
			method: http.MethodPost, path: entityRoute + "/messages/{type}", id: "post-message", summary: "Send an entity a message", handle: postMessage,
			description: "The body is the message's; an empty one stands for a message without fields. The message may create the entity, which is answered like any other message. " +
				"The answer is the handler's reply, or {\"life\",\"revision\"} from handlers of the kind \"on\", with an ETag.",
			conditional: true, identified: true, query: []string{"timeout"},
			body:    &bodyDoc{types: []string{jsonType}, description: "The message."},
			answers: []answerDoc{{status: http.StatusOK, description: "It was handled.", anyJSON: true, headers: tagged}},
			codes:   messageCodes(CodeNoSuchMessage),
		},
	}
}
