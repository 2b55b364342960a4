package httpapi

import (
	"reflect"
	"slices"
)

// operation is one route: what serves it, and what the OpenAPI document says
// of it.
type operation struct {
	method, path string
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
func operations() []operation {
	return slices.Concat(
		serviceOperations(), quarantineOperations(), podOperations(), entityOperations(), stateOperations(), valueOperations(), messageOperations(),
		futureOperations(), queryOperations(), historyOperations(), watchOperations(), bulkOperations(),
	)
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
