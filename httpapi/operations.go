package httpapi

import (
	"reflect"
	"slices"
)

// operation is one route: what serves it, and what the OpenAPI document says
// of it.
type operation struct {
	method, path string
	tag          string // of the group that it belongs to
	id, summary  string
	description  string
	query        []string // names of parameters, which documenter knows; any other is refused
	headers      []string // names of header parameters, beside those that the flags say
	conditional  bool     // takes If-Match, If-None-Match and, if it writes, condition
	identified   bool     // takes Idempotency-Key
	reads        bool     // changes nothing, whatever its method: the read scope is enough
	open         bool     // needs no token
	streams      bool     // the answer lasts as long as the client wants
	body         *bodyDoc
	answers      []answerDoc
	codes        []Code // beside those of every operation
	handle       func(*call) error
}

// bodyDoc describes a request's body; a nil shape is any JSON value.
type bodyDoc struct {
	types       []string
	shape       reflect.Type
	line        reflect.Type // of a body of lines, each of them JSON
	needed      []string     // members that must be there, if not those that an answer of the shape has
	description string
}

// answerDoc describes a successful answer; a nil shape has no body, unless
// anyJSON is set or media are, whose bodies are texts or bytes.
type answerDoc struct {
	status      int
	description string
	shape       reflect.Type
	shapes      []reflect.Type // any of these, in place of shape
	anyJSON     bool
	media       []string
	line        reflect.Type // of a body of lines, each of them JSON
	headers     []string
}

const (
	podRoute    = "/v1/pods/{pod}"
	entityRoute = podRoute + "/entities/{name}"
	stateRoute  = entityRoute + "/state"
	valueRoute  = stateRoute + "/{pointer}"
	futureRoute = "/v1/futures/{id}"

	messageRoute = entityRoute + "/messages/{type}"

	quarantineRoute = "/v1/quarantine"
	unreadableRoute = quarantineRoute + "/{pod}/{name}"
)

const apiDescription = "Pods of entities (digital twins) that keep what they acknowledge. " +
	"Names stand in paths percent-encoded as one segment. Errors are problem+json with a stable code. " +
	"504 outcome_unknown alone leaves open whether a change was made."

// operations lists every route. OPTIONS and, beside each GET, HEAD are served
// as well.
func operations() (all []operation) {
	for _, g := range operationGroups() {
		for _, op := range slices.Concat(g.operations...) {
			op.tag = g.tag
			if op.description == "" {
				op.description = op.summary + "."
			}
			all = append(all, op)
		}
	}
	return all
}

// operationGroup is a part of the API, as the OpenAPI document has it.
type operationGroup struct {
	tag, description string
	operations       [][]operation
}

func operationGroups() []operationGroup {
	return []operationGroup{
		{"pods", "Pods: what they are.", [][]operation{podOperations()}},
		{"entities", "Entities: their state, and writing it.", [][]operation{entityOperations(), stateOperations(), valueOperations()}},
		{"messages", "Messages to entities, and their answers.", [][]operation{messageOperations(), futureOperations()}},
		{"queries", "Finding entities.", [][]operation{queryOperations()}},
		{"watches", "Streams of changes.", [][]operation{watchOperations()}},
		{"history", "What has been.", [][]operation{historyOperations()}},
		{"bulk", "Many entities at a time.", [][]operation{bulkOperations()}},
		{"service", "Running the server.", [][]operation{serviceOperations(), quarantineOperations()}},
	}
}

// writeCodes are those of requests that an entity handles.
func writeCodes(more ...Code) []Code {
	return append([]Code{
		CodeBadName, CodeBadQuery, CodeBadPreference, CodeBadCondition, CodeNoSuchPod, CodeNoSuchEntity,
		CodePodReadOnly, CodeConflict, CodeStaleRevision, CodeConditionFailed, CodeStoreRefused, CodeMailboxFull,
		CodeStoreUnavailable, CodeQuarantined, CodeStopping, CodeOverloaded, CodeBusy, CodeOutcomeUnknown,
	}, more...)
}

// messageCodes are those of requests whose body is for an entity.
func messageCodes(more ...Code) []Code {
	return writeCodes(append([]Code{
		CodeMalformed, CodeBadMessageID, CodeMessageIDReused, CodeBodyTooLarge, CodeUnsupportedMedia, CodeUnknownField,
		CodeBadFilter, CodeTooCostly, CodeSchemaViolation, CodeRejected, CodeHandlerFailed,
	}, more...)...)
}
